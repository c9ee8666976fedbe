package component_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// promptly fails unless the component becomes ready soon after something happens, before any retry, with few requests.
func promptly(t *testing.T, c client.Client, op *operator, assembly *resources.Assembly, happens func() error) {
	t.Helper()
	op.requests.Reset()
	if err := happens(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	controlplanetest.Eventually(t, "the component does not go on", func(ctx context.Context) error {
		return hasState(ctx, c, assembly, apis.ComponentReady)
	})
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v until the state was reached, want at most 20s", took)
	} else {
		t.Logf("it took %v and %d requests: %s", took, op.requests.Total(), op.requests)
	}
	if n := op.requests.Total(); n > 12 {
		t.Errorf("there are %d requests, want at most 12: %s", n, op.requests)
	}
}

// What is on its way out is waited for, whoever owns it, without a request meanwhile.
func TestWhatTerminatesIsWaitedFor(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	op := startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	for name, going := range map[string]client.Object{
		"a config map":   &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "going"}},
		"a cluster role": &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: namespace}},
	} {
		desired := going.DeepCopyObject().(client.Object)
		going.SetFinalizers([]string{"example.com/hold"})
		if err := c.Create(t.Context(), going); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(t.Context(), going); err != nil {
			t.Fatal(err)
		}
		assembly := resources.NewAssembly(namespace, "all-"+going.GetName(), desired)
		if err := c.Create(t.Context(), assembly); err != nil {
			t.Fatal(err)
		}
		controlplanetest.Eventually(t, name+": it is not said", func(ctx context.Context) error {
			return conditionSays(ctx, c, assembly, component.ReasonProcessing, going.GetName()+": it is being deleted")
		})
		controlplanetest.Quiet(t, op.requests)
		promptly(t, c, op, assembly, func() error {
			release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			return c.Patch(t.Context(), going, release)
		})
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(desired), desired); err != nil || desired.GetUID() == going.GetUID() {
			t.Errorf("%s: the object has the UID %s (%v), want another", name, desired.GetUID(), err)
		}
		if err := c.Delete(t.Context(), assembly); err != nil {
			t.Fatal(err)
		}
		controlplanetest.Eventually(t, name+": the component does not go", isGone(c, assembly))
		// The watch by name has ended with the obstacle.
		controlplanetest.Quiet(t, op.requests)
	}
}

// What is in the way wakes the component when it goes, and when it loses its owner. Meanwhile no request is made.
func TestWhatIsInTheWayIsWatched(t *testing.T) {
	t.Parallel()
	c, namespace := live(t), plane.Namespace(t)
	op := startComponents(t, plane.Config(t), namespace, assemblyOptions{})
	for name, happens := range map[string]func(theirs *corev1.ConfigMap) error{
		"goes": func(theirs *corev1.ConfigMap) error { return c.Delete(t.Context(), theirs) },
		"loses-its-owner": func(theirs *corev1.ConfigMap) error {
			return c.Patch(t.Context(), theirs, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`)))
		},
	} {
		theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		foundObjects["of-a-controller"].mark(theirs)
		if err := c.Create(t.Context(), theirs, client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
		assembly := adopting(namespace, name, apis.AdoptIfUnowned)
		if err := c.Create(t.Context(), assembly); err != nil {
			t.Fatal(err)
		}
		controlplanetest.Eventually(t, "it is not said", func(ctx context.Context) error {
			return conditionSays(ctx, c, assembly, component.ReasonProcessing, name+": it is controlled by Namespace default")
		})
		controlplanetest.Quiet(t, op.requests)
		// What its owner writes is no news.
		patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"more":"of the same"}}`))
		if err := c.Patch(t.Context(), theirs, patch, client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
		controlplanetest.Rest(t, op.requests)
		if n := op.requests.Total(); n > 0 {
			t.Errorf("there are %d requests, want none: %s", n, op.requests)
		}
		promptly(t, c, op, assembly, func() error { return happens(theirs) })
		found := &corev1.ConfigMap{}
		if err := errors.Join(c.Get(t.Context(), client.ObjectKeyFromObject(theirs), found), client.IgnoreNotFound(c.Delete(t.Context(), assembly))); err != nil || found.Data["name"] != name {
			t.Errorf("the data are %v and the error %v, want the name %q and none", found.Data, err, name)
		}
		controlplanetest.Eventually(t, "the component does not go", isGone(c, assembly))
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(theirs), found); apierrs.IsNotFound(err) != (name == "goes") {
			t.Errorf("%s: the read of the object ends with %v, want it gone: %t", name, err, name == "goes")
		}
	}
}
