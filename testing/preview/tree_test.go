package preview_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/testing/preview"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	widgetRoot    = reconcilers.ResourceReconciler[*resources.Widget]
	widgetRollout = rtesting.Rollout[*resources.Widget]
)

// supervised returns the root of a feature that keeps the Deployment of [baseline].
func supervised(gated gate.Gate, suspended bool) func(reconcilers.Config) *widgetRoot {
	return func(config reconcilers.Config) *widgetRoot {
		return espalier.For(config, &feature.Feature[*resources.Widget]{
			Name:      "Shop",
			Gate:      func(context.Context, *resources.Widget) gate.Gate { return gated },
			Suspended: func(context.Context, *resources.Widget) (bool, error) { return suspended, nil },
			Reconciler: espalier.Owns("Deployment", func(
				context.Context, *resources.Widget,
			) (*appsv1.Deployment, error) {
				return baseline(), nil
			}),
		})
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	changed := func(change func(*widgetRollout)) widgetRollout {
		r := rollout(Shop{Version: "2.0.0"})
		change(&r)
		return r
	}
	given := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}}
	for name, tc := range map[string]struct {
		root    func(reconcilers.Config) *widgetRoot
		rollout widgetRollout
		want    []string
	}{
		"what is given is not among them": {
			root, changed(func(r *widgetRollout) { r.GivenObjects = append(r.GivenObjects, given) }),
			[]string{"ConfigMap catalog", "Deployment web with 1 replicas"},
		},
		"a node waits for what is not given": {
			root, changed(func(r *widgetRollout) { r.GivenObjects = nil }), nil,
		},
		"nothing gets ready": {
			root, changed(func(r *widgetRollout) { r.Complete = func(*unstructured.Unstructured) {} }),
			[]string{"Deployment web with 1 replicas"},
		},
		"a feature": {
			supervised(nil, false), rollout(Shop{}), []string{"Deployment web with 1 replicas"},
		},
		"a feature is off":       {supervised(gate.When(false), false), rollout(Shop{}), nil},
		"a feature is suspended": {supervised(nil, true), rollout(Shop{}), []string{"Deployment web with 0 replicas"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := preview.Tree(tc.root, tc.rollout)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, object := range objects {
				got = append(got, textOf(t, object))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("the tree keeps %q, not %q", got, tc.want)
			}
		})
	}
}

// textOf returns the kind, the name and the replicas of an object, and fails the test if it has what a server sets.
func textOf(t *testing.T, object client.Object) string {
	t.Helper()
	content := object.(*unstructured.Unstructured).Object
	if content["status"] != nil || object.GetUID() != "" || object.GetResourceVersion() != "" ||
		object.GetGeneration() != 0 || object.GetCreationTimestamp() != (metav1.Time{}) || object.GetManagedFields() != nil {
		t.Errorf("what a server sets is there: %v", content)
	}
	if len(object.GetOwnerReferences()) != 1 {
		t.Errorf("%s has no owner reference", object.GetName())
	}
	text := object.GetObjectKind().GroupVersionKind().Kind + " " + object.GetName()
	if replicas, ok, _ := unstructured.NestedInt64(content, "spec", "replicas"); ok {
		text += " with " + string('0'+rune(replicas)) + " replicas"
	}
	return text
}

func TestTreeFails(t *testing.T) {
	t.Parallel()
	fails := func(config reconcilers.Config) *widgetRoot {
		return espalier.For(config, espalier.Runs("Fails", func(context.Context, *resources.Widget) error {
			return errOops
		}))
	}
	invalid := func(config reconcilers.Config) *widgetRoot {
		return espalier.For[*resources.Widget](config, &reconcilers.SyncReconciler[*resources.Widget]{Name: "Syncs"})
	}
	valid := rollout(Shop{Version: "2.0.0"})
	withNil, withReconciler, bare := valid, valid, valid
	withNil.GivenObjects = []client.Object{(*corev1.Secret)(nil)}
	withReconciler.Reconciler = &reconcilers.SyncReconciler[*resources.Widget]{}
	bare.Scheme = nil
	for want, tc := range map[string]struct {
		root    func(reconcilers.Config) *widgetRoot
		rollout widgetRollout
	}{
		"a Tree needs a function that returns its root":              {nil, valid},
		"the function of the Tree returned no root":                  {func(reconcilers.Config) *widgetRoot { return nil }, valid},
		"the Rollout of a Tree has a Reconciler":                     {root, withReconciler},
		"a Rollout needs a Scheme":                                   {root, bare},
		"GivenObjects[0] is nil":                                     {root, withNil},
		"request 1 of the roll-out failed: ":                         {fails, valid},
		`ResourceReconciler "Widget" must have a valid Reconciler: `: {invalid, valid},
	} {
		if _, err := preview.Tree(tc.root, tc.rollout); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is\n%v\nwithout\n%s", err, want)
		}
	}
}
