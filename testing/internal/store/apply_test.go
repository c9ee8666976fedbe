package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
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
		t.Errorf("the answer is %+v, want a UID and the version 1000", first)
	}
	must(t, c.Apply(ctx, config("a", "1", "b", "1")))
	if s.Revision() != 1000 {
		t.Errorf("the store is at revision %d, want 1000, since the same was applied again", s.Revision())
	}
	reason(t, c.Apply(ctx, config("a", "2"), other), metav1.StatusReasonConflict, `conflict with "one": .data.a`)
	must(t, c.Apply(ctx, config("c", "2"), other))
	must(t, c.Apply(ctx, config("a", "3"), other, client.ForceOwnership, client.DryRunAll))
	if got := read(t, c, configMap("one")); got.Data["a"] != "1" || s.Revision() != 1001 {
		t.Errorf("the data are %v at revision %d, want 1 for a at 1001", got.Data, s.Revision())
	}
	must(t, c.Apply(ctx, config("a", "3", "c", "2"), other, client.ForceOwnership))
	must(t, c.Apply(ctx, config("x", "1")))
	got := read(t, c, configMap("one"))
	if len(got.Data) != 3 || got.Data["a"] != "3" || got.Data["c"] != "2" || got.Data["x"] != "1" {
		t.Errorf("the data are %v, want a:3 c:2 x:1", got.Data)
	}
	if len(got.ManagedFields) != 2 {
		t.Errorf("the managed fields are %v, want 2 entries", got.ManagedFields)
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
			t.Errorf("the answer is %v, want a UID and the kind %s", obj, gvk)
		}
		if got := read(t, c, obj).GetManagedFields(); len(got) != 1 || got[0].Operation != "Apply" {
			t.Errorf("the managed fields of %T are %v, want 1 entry of an apply", obj, got)
		}
	}
}

func TestApplyAfterAnUpdate(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	cm := configMap("one")
	must(t, c.Create(t.Context(), cm, client.FieldOwner("creator")))
	if cm.ManagedFields != nil {
		t.Errorf("the managed fields before an apply are %v, want none", cm.ManagedFields)
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
		t.Errorf("the managers are %v, want 3", managers)
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
		t.Errorf("the managed fields are %v, want 1 entry, of espalier.test", cm.ManagedFields)
	}
	if got := read(t, c, cm).ManagedFields; len(got) != 1 {
		t.Errorf("the managed fields that are read are %v, want 1 entry", got)
	}
}

// TestGivenManagedFields gives an object to whose fields somebody else applied.
func TestGivenManagedFields(t *testing.T) {
	t.Parallel()
	given := configMap("one")
	given.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "other", Operation: "Apply", APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{ "f:data": {"f:k":{}} }`),
	}}
	second := given.ManagedFields[0]
	second.Manager = "others"
	given.ManagedFields = append(given.ManagedFields, second)
	s := newStore(t, given)
	c := s.Client(store.ClientOptions{})
	if got := read(t, c, given).ManagedFields; len(got) != 2 || got[0].Manager != "other" {
		t.Errorf("the managed fields are %v, want 2 entries, the first of other", got)
	}
	err := c.Apply(t.Context(), config("k", "new"), client.FieldOwner("one"))
	reason(t, err, metav1.StatusReasonConflict, "- .data.k\nconflicts with \"others\":\n- .data.k")
	before := s.Revision()
	must(t, c.Apply(t.Context(), config("k", "v"), client.FieldOwner("other")))
	if got := s.Revision(); got != before {
		t.Errorf("an apply that changes nothing brought the store to revision %d, want %d", got, before)
	}
	given.Name, given.ManagedFields[1].FieldsType = "invalid", "FieldsV2"
	if err := s.Give(given); err == nil || !strings.Contains(err.Error(), "FieldsV2") {
		t.Errorf("got the error %v, want one about the invalid managed fields", err)
	}
}

// TestGivenManagedFieldsOfOtherVersions gives an object whose fields were managed by way of versions that are not
// served. An API server forgets those of another group, because it cannot convert to it.
func TestGivenManagedFieldsOfOtherVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]metav1.StatusReason{
		"apps/v1beta2": metav1.StatusReasonConflict, "extensions/v1beta1": "",
	} {
		given := deployment("one")
		given.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "other", Operation: "Update", APIVersion: version, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
		}}
		replicas := applyappsv1.Deployment("one", "ns").WithSpec(applyappsv1.DeploymentSpec().WithReplicas(7))
		reason(t, newClient(t, given).Apply(t.Context(), replicas, client.FieldOwner("one")), want, "")
	}
}

// TestApplyToAGivenObject applies to an object of which nobody knows who wrote it.
func TestApplyToAGivenObject(t *testing.T) {
	t.Parallel()
	c := newClient(t, configMap("one"))
	cm := read(t, c, configMap("one"))
	cm.Data["u"] = "1"
	must(t, c.Update(t.Context(), cm, client.FieldOwner("updater")))
	if got := read(t, c, cm).ManagedFields; got != nil {
		t.Errorf("after an update, got the managed fields %v, want none", got)
	}
	must(t, c.Apply(t.Context(), config("a", "1"), client.FieldOwner("one")))
	entries := read(t, c, cm).ManagedFields
	if len(entries) != 2 || entries[1].Manager != "before-first-apply" ||
		entries[1].FieldsV1.GetRawString() != `{"f:data":{".":{},"f:k":{},"f:u":{}}}` {
		t.Errorf("got the managed fields %v, want what was there as that of before-first-apply", entries)
	}
}

// TestTimesOfManagedFields shows that they are those of the store, also in the order in which an API server joins the
// oldest entries when there are more than ten.
func TestTimesOfManagedFields(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]time.Time{"past": time.Unix(0, 0).UTC(), "future": now.AddDate(100, 0, 0)} {
		at := start
		s := store.New(store.Options{Scheme: newScheme(), Now: func() time.Time { return at }})
		give(t, s, namespace("ns"))
		c, wrote, want := s.Client(store.ClientOptions{}), map[string]time.Time{}, map[string]time.Time{}
		write := func(seconds int, manager string, call func(owner client.FieldOwner) error) {
			at = start.Add(time.Duration(seconds)*time.Second + time.Millisecond)
			must(t, call(client.FieldOwner(manager)))
			wrote[manager] = at.Truncate(time.Second)
		}
		apply := func(data ...string) func(client.FieldOwner) error {
			return func(owner client.FieldOwner) error { return c.Apply(t.Context(), config(data...), owner) }
		}
		write(1, "applier", apply("a", "1"))
		write(2, "applier", apply("a", "2"))
		want["applier"] = wrote["applier"]
		write(3, "applier", apply("a", "2")) // That changes nothing.
		cm := configMap("one")
		for i := range 12 {
			// The names are in another order than the times, and two writes are made in each second.
			manager := fmt.Sprintf("m%02d", i*5%12)
			write(10+i/2, manager, func(owner client.FieldOwner) error {
				return c.Patch(t.Context(), cm, client.RawPatch("application/merge-patch+json",
					fmt.Appendf(nil, `{"data":{"m%d":"1"}}`, i)), owner)
			})
			if manager != "m00" && manager != "m05" && manager != "m03" {
				want[manager] = wrote[manager]
			}
		}
		want["ancient-changes"] = wrote["m03"]
		got := map[string]time.Time{}
		for _, entry := range read(t, c, cm).ManagedFields {
			got[entry.Manager] = entry.Time.Time
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the times of managed fields differ (-want, +got):\n%s", name, diff)
		}
	}
}

func TestApplyOfStatus(t *testing.T) {
	t.Parallel()
	c := newClient(t, widgets())
	owner := client.FieldOwner("one")
	status := widget("one")
	status.Object["status"] = map[string]any{"ready": true}
	must(t, c.Apply(t.Context(), applied(t, status.DeepCopy()), owner))
	if _, ok := read(t, c, widget("one")).Object["status"]; ok {
		t.Error("an apply of the object set the status, want it left alone")
	}
	delete(status.Object, "spec")
	must(t, c.Status().Apply(t.Context(), applied(t, status), owner))
	got := read(t, c, widget("one"))
	if ready, _, _ := unstructured.NestedBool(got.Object, "status", "ready"); !ready || got.GetGeneration() != 1 {
		t.Errorf("the object is %v, want it ready and of generation 1", got)
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
		t.Error("the object is there after an apply without its finalizer, want it gone")
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
		t.Error("an invalid object was created, want none")
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
			t.Fatalf("the answer is %v at revision %d, want managed fields and revision %d", nothing, s.Revision(),
				revision)
		}
	}
	must(t, errors.Join(<-reads, <-reads))
}
