package takeover

import (
	"slices"

	"github.com/espalier-dev/espalier/internal/managedfields"
	"github.com/espalier-dev/espalier/internal/write"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Manager is the field manager of what this package writes. The fields of objects that it writes go to the operator
// that gets the object.
const Manager = "espalier-migrate"

// handOverFields returns the managed fields of an object with what the old operator has written as applied by ours. So
// the next apply removes what is not desired. Its old marks stay with the old operator, and so do the fields that no
// apply may take away. It reports whether that is a change.
func (n Names) handOverFields(
	entries []metav1.ManagedFieldsEntry, kind schema.GroupKind,
) (moved []metav1.ManagedFieldsEntry, changed bool, err error) {
	stay := append(write.Kept(kind),
		[]string{"metadata", "labels", n.From.label()},
		[]string{"metadata", "annotations", n.From.annotation()},
		[]string{"metadata", "annotations", n.From.digest()},
	)
	for i := range entries {
		entry := entries[i]
		if entry.Subresource != "" || entry.Manager != n.From.FieldManager && entry.Manager != Manager {
			moved = append(moved, entry)
			continue
		}
		fields, err := managedfields.FieldsOf(&entry)
		if err != nil {
			return nil, false, err
		}
		stays, goes := &fieldpath.Set{}, fields
		if entry.Manager != Manager {
			stays, goes = split(fields, stay)
		}
		if goes.Empty() {
			moved = append(moved, entry)
			continue
		}
		changed = true
		if !stays.Empty() {
			rest := entry
			if err := managedfields.SetFields(&rest, stays); err != nil {
				return nil, false, err
			}
			moved = append(moved, rest)
		}
		target := metav1.ManagedFieldsEntry{
			Manager: n.To.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
			APIVersion: entry.APIVersion, Time: entry.Time,
		}
		if moved, err = addTo(moved, target, goes); err != nil {
			return nil, false, err
		}
	}
	return mergeTwins(moved, changed)
}

// giveBackFields returns the managed fields of an object with what our operator has written as written by the old one:
// by an apply or by an update, as its policy says unless it shows what it did.
func (n Names) giveBackFields(
	entries []metav1.ManagedFieldsEntry, applied bool,
) (moved []metav1.ManagedFieldsEntry, changed bool, err error) {
	operation := metav1.ManagedFieldsOperationUpdate
	if applied {
		operation = metav1.ManagedFieldsOperationApply
	}
	var back []metav1.ManagedFieldsEntry
	for i := range entries {
		entry := &entries[i]
		switch {
		case entry.Subresource == "" && (entry.Manager == n.To.FieldManager || entry.Manager == Manager):
			back = append(back, *entry)
		case entry.Subresource == "" && entry.Manager == n.From.FieldManager:
			operation = entry.Operation
			moved = append(moved, *entry)
		default:
			moved = append(moved, *entry)
		}
	}
	for i := range back {
		fields, err := managedfields.FieldsOf(&back[i])
		if err != nil {
			return nil, false, err
		}
		target := metav1.ManagedFieldsEntry{
			Manager: n.From.FieldManager, Operation: operation, APIVersion: back[i].APIVersion, Time: back[i].Time,
		}
		if moved, err = addTo(moved, target, fields); err != nil {
			return nil, false, err
		}
	}
	return moved, len(back) > 0, nil
}

// componentFields returns the managed fields of a component that is given back, with what this package has written as
// written by the old operator.
func (n Names) componentFields(
	entries []metav1.ManagedFieldsEntry,
) (moved []metav1.ManagedFieldsEntry, changed bool, err error) {
	for i := range entries {
		if entries[i].Manager != Manager {
			moved = append(moved, entries[i])
		}
	}
	for _, entry := range entries {
		if entry.Manager != Manager {
			continue
		}
		fields, err := managedfields.FieldsOf(&entry)
		if err != nil {
			return nil, false, err
		}
		entry.Manager, changed = n.From.FieldManager, true
		if moved, err = addTo(moved, entry, fields); err != nil {
			return nil, false, err
		}
	}
	return moved, changed, nil
}

// finalizeFields returns the managed fields of an object without those of the old operator.
func (n Names) finalizeFields(
	entries []metav1.ManagedFieldsEntry,
) (left []metav1.ManagedFieldsEntry, changed bool, err error) {
	left = slices.DeleteFunc(slices.Clone(entries), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == "" && (entry.Manager == n.From.FieldManager || entry.Manager == Manager)
	})
	return left, len(left) < len(entries), nil
}

// isTwin reports whether two entries are one for the API server.
func isTwin(a, b *metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion &&
		a.Subresource == b.Subresource
}

// addTo adds fields to the entry like target, or else such an entry.
func addTo(
	entries []metav1.ManagedFieldsEntry, target metav1.ManagedFieldsEntry, fields *fieldpath.Set,
) ([]metav1.ManagedFieldsEntry, error) {
	at := slices.IndexFunc(entries, func(entry metav1.ManagedFieldsEntry) bool { return isTwin(&entry, &target) })
	if at < 0 {
		at, entries = len(entries), append(entries, target)
	} else {
		known, err := managedfields.FieldsOf(&entries[at])
		if err != nil {
			return nil, err
		}
		fields = known.Union(fields)
	}
	return entries, managedfields.SetFields(&entries[at], fields)
}

// mergeTwins merges entries that are one for the API server: an entry of our operator may follow what was moved there.
func mergeTwins(entries []metav1.ManagedFieldsEntry, changed bool) ([]metav1.ManagedFieldsEntry, bool, error) {
	var merged []metav1.ManagedFieldsEntry
	for i := range entries {
		twin := slices.ContainsFunc(merged, func(e metav1.ManagedFieldsEntry) bool { return isTwin(&e, &entries[i]) })
		if !twin {
			merged = append(merged, entries[i])
			continue
		}
		fields, err := managedfields.FieldsOf(&entries[i])
		if err != nil {
			return nil, false, err
		}
		if merged, err = addTo(merged, entries[i], fields); err != nil {
			return nil, false, err
		}
	}
	return merged, changed, nil
}

// split divides fields into those at or below one of the pointers, and all others.
func split(fields *fieldpath.Set, pointers [][]string) (below, others *fieldpath.Set) {
	below, others = &fieldpath.Set{}, &fieldpath.Set{}
	fields.Iterate(func(path fieldpath.Path) {
		target := others
		if slices.ContainsFunc(pointers, func(pointer []string) bool { return managedfields.IsBelow(path, pointer) }) {
			target = below
		}
		target.Insert(path.Copy())
	})
	return below, others
}
