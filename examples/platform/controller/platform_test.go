package controller_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

var scheme = mustScheme()

func mustScheme() *runtime.Scheme {
	s, err := controller.NewScheme()
	if err != nil {
		panic(err)
	}
	return s
}

var platform = rtesting.NewFixture(&v1alpha1.Platform{
	ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "x-uid", Generation: 1},
	Spec:       v1alpha1.PlatformSpec{Version: "1.0"},
})

func asksFor(version string, features ...v1alpha1.Feature) func(*v1alpha1.Platform) {
	return func(p *v1alpha1.Platform) { p.Spec.Version, p.Spec.Features = version, features }
}

func released(p *v1alpha1.Platform) {
	p.Status.Manage(context.Background()).MarkTrue(v1alpha1.ReleaseFound, "Found", "")
}

func unreleased(message string) func(*v1alpha1.Platform) {
	return func(p *v1alpha1.Platform) {
		p.Status.Manage(context.Background()).MarkFalse(v1alpha1.ReleaseFound, "NotFound", "%s", message)
	}
}

const noSuchRelease = `there is no release "9.9"; there are 1.0, 1.1, 2.0`

func TestRelease(t *testing.T) {
	table := rtesting.NodeTests[*v1alpha1.Platform]{
		"there is such a release": {
			Resource:       platform.Object(),
			ExpectResource: platform.With(released).Object(),
		},
		"there is none": {
			Resource:       platform.With(asksFor("9.9")).Object(),
			ShouldErr:      true,
			ExpectResource: platform.With(asksFor("9.9"), unreleased(noSuchRelease)).Object(),
		},
		"it has no such feature": {
			Resource:       platform.With(asksFor("1.1", v1alpha1.Portal)).Object(),
			ShouldErr:      true,
			ExpectResource: platform.With(asksFor("1.1", v1alpha1.Portal), unreleased("release 1.1 has no feature Portal")).Object(),
		},
	}
	table.RunNode(t, scheme, controller.Release)
}

// TestNoRelease: nothing is installed of a platform without a release, nothing that it has is touched, and it is not
// reconciled again before a user changes it.
func TestNoRelease(t *testing.T) {
	lost := platform.With(asksFor("9.9"), rtesting.Initialized, unreleased(noSuchRelease), rtesting.Observed)
	updated := rtesting.Normal(platform, "StatusUpdated", "Updated status")
	settings := rtesting.NewFixture(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x-settings"}})
	table := rtesting.RootTests{
		"it is new": {
			GivenObjects:        []client.Object{platform.With(asksFor("9.9"))},
			ExpectEvents:        []rtesting.Event{updated},
			ExpectStatusUpdates: []client.Object{lost},
		},
		"the status says so": {
			GivenObjects: []client.Object{lost, settings},
		},
	}
	for name, tc := range table {
		tc.Request.Namespace, tc.Request.Name = "ns", "x"
		table[name] = tc
	}
	table.RunRoot(t, scheme, func(c reconcilers.Config) reconcile.Reconciler { return controller.New(c) })
}

// TestReadyFollows: Ready says what the component says of itself.
func TestReadyFollows(t *testing.T) {
	reflect := controller.Installation().Reflect
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
		t.Run(string(status), func(t *testing.T) {
			p := platform.With(rtesting.Initialized, released).Object()
			for i := range p.Status.Conditions {
				if p.Status.Conditions[i].Type == v1alpha1.Installed {
					p.Status.Conditions[i].Status, p.Status.Conditions[i].Reason = status, "Ready"
				}
			}
			reflect(t.Context(), p, &p.Status.ComponentStatus)
			if ready := p.Status.GetCondition(apis.ConditionReady); ready.Status != status || ready.Reason != "Ready" {
				t.Errorf("Ready is %v", ready)
			}
		})
	}
	bare := &v1alpha1.Platform{}
	reflect(t.Context(), bare, &bare.Status.ComponentStatus)
	if len(bare.Status.Conditions) > 0 {
		t.Errorf("there are conditions %v of nothing", bare.Status.Conditions)
	}
}

// TestDeletionBegins: the search goes first, and as long as the installation is not gone, the information about it stays.
func TestDeletionBegins(t *testing.T) {
	for name, test := range map[string]struct {
		finalizer string
		deletes   []string
	}{
		"the installation is there": {controller.Prefix + "/component", []string{"Search", "Installation"}},
		"the installation is gone": {"example.com/other",
			[]string{"Search", "Installation", "Information", "Release"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := controller.New(reconcilers.Config{})
			tree := root.Reconciler.(reconcilers.ReverseOnDeletion[*v1alpha1.Platform])
			var ran []string
			for i, node := range tree {
				tree[i] = &standIn{reconcilers.Describe(node), &ran}
			}
			deleted := platform.Object()
			deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			deleted.Finalizers = []string{test.finalizer}
			if _, err := tree.Reconcile(t.Context(), deleted); err != nil || !slices.Equal(ran, test.deletes) {
				t.Errorf("%q ran, %v", ran, err)
			}
		})
	}
}

// standIn is described as a node of the tree, and does nothing.
type standIn struct {
	description reconcilers.Description
	ran         *[]string
}

func (s *standIn) Describe() reconcilers.Description { return s.description }

func (s *standIn) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (s *standIn) Reconcile(context.Context, *v1alpha1.Platform) (reconcilers.Result, error) {
	*s.ran = append(*s.ran, s.description.Name)
	return reconcilers.Result{}, nil
}
