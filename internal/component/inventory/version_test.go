package inventory_test

import (
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"
)

// A version of an inventory in a status differs if any field of a record does.
func TestStatusVersionSeesEachField(t *testing.T) {
	version := func(records ...apis.InventoryRecord) uint64 {
		return inventory.NewStatus(&apis.ComponentStatus{Inventory: records}).Version()
	}
	before := version(ready(1), ready(2))
	if again := version(ready(1), ready(2)); again != before || before == 0 {
		t.Errorf("the same records have the versions %d and %d, want the same, and not 0", before, again)
	}
	for name, other := range map[string]uint64{
		"none": version(), "less": version(ready(1)), "moved": version(ready(2), ready(1)),
	} {
		if other == before || other == 0 {
			t.Errorf("%s: the version is %d, want another than %d and than 0", name, other, before)
		}
	}
	fields := reflect.TypeFor[apis.InventoryRecord]()
	for i := range fields.NumField() {
		changed := ready(2)
		change(t, reflect.ValueOf(&changed).Elem().Field(i))
		if version(ready(1), changed) == before {
			t.Errorf("a change of %s leaves the version %d, want another one", fields.Field(i).Name, before)
		}
	}
}

// The version of an inventory in objects is known from the first read on, and changes with each write.
func TestObjectsVersion(t *testing.T) {
	w := newWorld(t)
	link := w.link(t)
	store := open(t, optionsFor(link, ""))
	if store.Version() != 0 {
		t.Errorf("the version before the first load is %d, want 0", store.Version())
	}
	mustLoad(t, store)
	empty := store.Version()
	all := records(3, ready)
	mustSave(t, store, all)
	first := store.Version()
	mustSave(t, store, all)
	same := store.Version()
	all[1].Generation++
	mustSave(t, store, all)
	if second := store.Version(); empty == 0 || first == empty || same != first || second == first {
		t.Errorf("the versions are %d, %d, %d and %d, want 0 nowhere and another one exactly after a change", empty,
			first, same, second)
	}
}

func BenchmarkStatusVersion(b *testing.B) {
	store := inventory.NewStatus(&apis.ComponentStatus{Inventory: records(3000, ready)})
	b.ReportAllocs()
	for b.Loop() {
		store.Version()
	}
}

// What is packed is unpacked as it was, whatever the records have in common.
func TestPackedRecords(t *testing.T) {
	all := append(records(20, ready), records(20, record)...)
	fields := reflect.TypeFor[apis.InventoryRecord]()
	for i := range fields.NumField() {
		changed := ready(100 + i)
		change(t, reflect.ValueOf(&changed).Elem().Field(i))
		all = append(all, changed, ready(200+i))
	}
	for i := range all {
		all[i] = inventory.Compact(all[i])
	}
	if got := inventory.PackAndUnpack(all); !reflect.DeepEqual(all, got) {
		t.Errorf("got %v, want %v", got, all)
	}
}
