package inventory

import (
	"cmp"
	"slices"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/plan"
)

// Equal tells whether two inventories say the same, in whatever order, once compact.
func Equal(a, b []apis.InventoryRecord) bool {
	return holds(compactAll(a), b)
}

// holds tells whether stored records, which are compact, say the same as others, which need not be. It costs no memory if they
// have the same order.
func holds(stored, records []apis.InventoryRecord) bool {
	if len(stored) != len(records) {
		return false
	}
	var moved []int
	for i := range records {
		if record := Compact(records[i]); !same(&stored[i], &record) {
			moved = append(moved, i)
		}
	}
	if len(moved) == 0 {
		return true
	}
	others := make(map[plan.Key]*apis.InventoryRecord, len(moved))
	for _, i := range moved {
		others[plan.KeyOf(stored[i])] = &stored[i]
	}
	for _, i := range moved {
		record := Compact(records[i])
		key := plan.KeyOf(record)
		other, ok := others[key]
		if !ok || !same(other, &record) {
			return false
		}
		delete(others, key)
	}
	return true
}

// same tells whether two compact records say the same.
func same(a, b *apis.InventoryRecord) bool {
	return a.Name == b.Name && a.Namespace == b.Namespace && a.Kind == b.Kind && a.Group == b.Group && a.Version == b.Version &&
		a.UID == b.UID &&
		a.AdoptionPolicy == b.AdoptionPolicy && a.ReconcilePolicy == b.ReconcilePolicy && a.UpdatePolicy == b.UpdatePolicy &&
		a.DeletePolicy == b.DeletePolicy && a.PrunePolicy == b.PrunePolicy &&
		a.ApplyOrder == b.ApplyOrder && samePointer(a.PurgeOrder, b.PurgeOrder) && a.DeleteOrder == b.DeleteOrder &&
		slices.Equal(a.ManagedTypes, b.ManagedTypes) && a.IgnoreForeignInstances == b.IgnoreForeignInstances &&
		a.Digest == b.Digest && a.Fields == b.Fields && a.Generation == b.Generation &&
		a.Phase == b.Phase && a.Status == b.Status && a.Message == b.Message &&
		a.LastAppliedAt.Equal(b.LastAppliedAt)
}

func samePointer[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// byKey orders records.
func byKey(a, b *apis.InventoryRecord) int {
	return cmp.Or(
		cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}
