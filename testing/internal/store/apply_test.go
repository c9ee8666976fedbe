package store_test

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

func config(data ...string) *applycorev1.ConfigMapApplyConfiguration {
	c := applycorev1.ConfigMap("one", "ns")
	for i := 0; i < len(data); i += 2 {
		c.WithData(map[string]string{data[i]: data[i+1]})
	}
	return c
}

func applied(t *testing.T, obj *unstructured.Unstructured) runtime.ApplyConfiguration {
	t.Helper()
	return client.ApplyConfigurationFromUnstructured(obj)
}

func TestApply(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	c := s.Client(store.ClientOptions{FieldManager: "one"})
	other := client.FieldOwner("two")
	ctx := t.Context()

	first := config("a", "1", "b", "1")
	must(t, c.Apply(ctx, first))
	if first.UID == nil || *first.ResourceVersion != "1000" {
		t.Errorf("answered %+v", first)
	}
	must(t, c.Apply(ctx, config("a", "1", "b", "1")))
	if s.Revision() != 1000 {
		t.Error("the same was written again")
	}
	reason(t, c.Apply(ctx, config("a", "2"), other), metav1.StatusReasonConflict, `conflict with "one": .data.a`)
	must(t, c.Apply(ctx, config("c", "2"), other))
	must(t, c.Apply(ctx, config("a", "3"), other, client.ForceOwnership, client.DryRunAll))
	if got := read(t, c, configMap("one")); got.Data["a"] != "1" || s.Revision() != 1001 {
		t.Errorf("got %v", got.Data)
	}
	must(t, c.Apply(ctx, config("a", "3", "c", "2"), other, client.ForceOwnership))
	must(t, c.Apply(ctx, config("x", "1")))
	got := read(t, c, configMap("one"))
	if len(got.Data) != 3 || got.Data["a"] != "3" || got.Data["c"] != "2" || got.Data["x"] != "1" {
		t.Errorf("got %v", got.Data)
	}
	if len(got.ManagedFields) != 2 {
		t.Errorf("got the managed fields %v", got.ManagedFields)
	}
}

func TestApplyAsAPatch(t *testing.T) {
	t.Parallel()
	c := newClient(t, widgets())
	for _, obj := range []client.Object{configMap("one"), app("one"), widget("one")} {
		gvk, err := c.GroupVersionKindFor(obj)
		must(t, err)
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		//lint:ignore SA1019 the older way has to work
		patch := client.Apply
		reason(t, c.Patch(t.Context(), obj, patch), metav1.StatusReasonInvalid, "is required for apply patch")
		must(t, c.Patch(t.Context(), obj, patch, client.FieldOwner("one")))
		if obj.GetUID() == "" || obj.GetObjectKind().GroupVersionKind() != gvk {
			t.Errorf("answered %v", obj)
		}
		if got := read(t, c, obj).GetManagedFields(); len(got) != 1 || got[0].Operation != "Apply" {
			t.Errorf("%T: got the managed fields %v", obj, got)
		}
	}
}

func TestApplyAfterAnUpdate(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	cm := configMap("one")
	must(t, c.Create(t.Context(), cm, client.FieldOwner("creator")))
	if cm.ManagedFields != nil {
		t.Error("managed fields are shown before an apply")
	}
	cm.Data["u"] = "1"
	must(t, c.Update(t.Context(), cm, client.FieldOwner("updater")))
	owner := client.FieldOwner("one")
	for key, manager := range map[string]string{"k": "creator", "u": "updater"} {
		err := c.Apply(t.Context(), config(key, "new"), owner)
		reason(t, err, metav1.StatusReasonConflict, fmt.Sprintf("%q using v1: .data.%s", manager, key))
	}
	must(t, c.Apply(t.Context(), config("k", "v"), owner))
	var managers []string
	for _, entry := range read(t, c, cm).ManagedFields {
		managers = append(managers, entry.Manager)
	}
	if len(managers) != 3 {
		t.Errorf("got the managers %v", managers)
	}
}

func TestManagedFieldsOption(t *testing.T) {
	t.Parallel()
	s := store.New(store.Options{Scheme: newScheme(), ManagedFields: true})
	give(t, s, namespace("ns"))
	c := s.Client(store.ClientOptions{})
	cm := configMap("one")
	must(t, c.Create(t.Context(), cm))
	if len(cm.ManagedFields) != 1 || cm.ManagedFields[0].Manager != "espalier.test" {
		t.Errorf("got %v", cm.ManagedFields)
	}
	if got := read(t, c, cm).ManagedFields; len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

// TestGivenManagedFields gives an object to whose fields somebody else applied.
func TestGivenManagedFields(t *testing.T) {
	t.Parallel()
	given := configMap("one")
	given.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "other", Operation: "Apply", APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:k":{}}}`),
	}}
	c := newClient(t, given)
	if got := read(t, c, given).ManagedFields; len(got) != 1 || got[0].Manager != "other" {
		t.Errorf("got %v", got)
	}
	err := c.Apply(t.Context(), config("k", "new"), client.FieldOwner("one"))
	reason(t, err, metav1.StatusReasonConflict, `conflict with "other": .data.k`)
}

func TestApplyOfStatus(t *testing.T) {
	t.Parallel()
	c := newClient(t, widgets())
	owner := client.FieldOwner("one")
	status := widget("one")
	status.Object["status"] = map[string]any{"ready": true}
	must(t, c.Apply(t.Context(), applied(t, status.DeepCopy()), owner))
	if _, ok := read(t, c, widget("one")).Object["status"]; ok {
		t.Error("an apply of the object set the status")
	}
	delete(status.Object, "spec")
	must(t, c.Status().Apply(t.Context(), applied(t, status), owner))
	got := read(t, c, widget("one"))
	if ready, _, _ := unstructured.NestedBool(got.Object, "status", "ready"); !ready || got.GetGeneration() != 1 {
		t.Errorf("got %v", got)
	}
	status.SetName("none")
	reason(t, c.Status().Apply(t.Context(), applied(t, status), owner), metav1.StatusReasonNotFound, "")
}

func TestApplyOfADeadObject(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	err := c.Apply(t.Context(), config("k", "v").WithUID("dead"), client.FieldOwner("one"))
	reason(t, err, metav1.StatusReasonConflict, "uid mismatch: the provided object specified uid dead")
	must(t, c.Create(t.Context(), configMap("one")))
	err = c.Apply(t.Context(), config("k", "v").WithUID("dead"), client.FieldOwner("one"))
	reason(t, err, metav1.StatusReasonInvalid, "metadata.uid")
}

// TestApplyRemovesTheLastFinalizer ends a deletion with an apply without the finalizer.
func TestApplyRemovesTheLastFinalizer(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	owner := client.FieldOwner("one")
	must(t, c.Apply(t.Context(), config("k", "v").WithFinalizers(hold), owner))
	must(t, c.Delete(t.Context(), configMap("one")))
	must(t, c.Apply(t.Context(), config("k", "v"), owner))
	if exists(t, c, configMap("one")) {
		t.Error("it is there")
	}
}

func TestApplyOfInvalidObjects(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	owner := client.FieldOwner("one")
	wrong, lost := applycorev1.ConfigMap("No", "ns"), applycorev1.ConfigMap("one", "none")
	reason(t, c.Apply(t.Context(), wrong, owner), metav1.StatusReasonInvalid, "metadata.name")
	reason(t, c.Apply(t.Context(), lost, owner), metav1.StatusReasonNotFound, "none")
	noMatch(t, c.Apply(t.Context(), applied(t, widget("one")), owner))
	if exists(t, c, configMap("No")) {
		t.Error("an invalid object was created")
	}
}

// TestApplyOfNothingBesideReads shows the managed fields of an object that others read. It needs the race detector.
func TestApplyOfNothingBesideReads(t *testing.T) {
	t.Parallel()
	s := newStore(t, widgets())
	c := s.Client(store.ClientOptions{})
	must(t, c.Create(t.Context(), widget("one")))
	fork := s.Fork()
	reads := make(chan error)
	for _, reader := range []*store.Store{s, fork} {
		go func() {
			var err error
			for range 100 {
				obj := widget("one")
				err = errors.Join(err, reader.Client(store.ClientOptions{}).Get(
					t.Context(), client.ObjectKeyFromObject(obj), obj))
			}
			reads <- err
		}()
	}
	revision := s.Revision()
	for range 100 {
		nothing := widget("one")
		delete(nothing.Object, "spec")
		must(t, c.Apply(t.Context(), applied(t, nothing), client.FieldOwner("one")))
		if s.Revision() != revision || len(nothing.GetManagedFields()) == 0 {
			t.Fatalf("answered %v at revision %d", nothing, s.Revision())
		}
	}
	must(t, errors.Join(<-reads, <-reads))
}
