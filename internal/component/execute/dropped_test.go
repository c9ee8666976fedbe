package execute_test

import (
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An exact deletion is not tried again with an object that has changed.
func TestDeleteOfOneVersionAlone(t *testing.T) {
	b := newBench(t)
	o := b.desire(configMap, "d1")
	created := b.create(o)
	o.SetUID(created.GetUID())
	op := operation(plan.ActionDelete, o)
	op.ResourceVersion, op.Exact = created.GetResourceVersion(), true
	changed := b.live(o)
	changed.Object["data"] = map[string]any{"changed": "yes"}
	if err := b.Update(b.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if result := b.run(op); !isConflict(result.Err) || result.Gone {
		t.Errorf("the error is %v and gone is %t, want a conflict and false", result.Err, result.Gone)
	}
	op.ResourceVersion = changed.GetResourceVersion()
	// The observer does not know the object.
	b.executor.Managed = func(plan.Key) []metav1.ManagedFieldsEntry { return nil }
	b.do(op, 1)
	b.absent(o)
}

// An object that is dropped is read whole, in a version that is served, as long as it is ours.
func TestReadOfWhatIsDropped(t *testing.T) {
	b := newBench(t)
	o := b.put(configMap, ownedBy(myID, myOwner))
	read := func(change func(r *apis.InventoryRecord)) *unstructured.Unstructured {
		t.Helper()
		record := apis.InventoryRecord{Version: "v1", Kind: "ConfigMap", Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
		change(&record)
		live, err := b.executor.Read(t.Context(), &record)
		if err != nil {
			t.Error(err)
		}
		return live
	}
	for _, version := range []string{"v1", "v1beta1"} {
		if live := read(func(r *apis.InventoryRecord) { r.Version = version }); live == nil || live.Object["data"] == nil {
			t.Errorf("%s: %v is read, want the whole object", version, live)
		}
	}
	if live := read(func(r *apis.InventoryRecord) { r.UID = "another" }); live != nil {
		t.Errorf("%v is read, want nothing, for it is another object", live)
	}
	o.SetLabels(map[string]string{ownerLabel: otherID})
	o.SetAnnotations(map[string]string{ownerNote: otherOwner})
	if err := b.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if live := read(func(*apis.InventoryRecord) {}); live != nil {
		t.Errorf("%v is read, want nothing, for it is somebody else's", live)
	}
}
