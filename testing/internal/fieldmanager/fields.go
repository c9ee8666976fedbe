package fieldmanager

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Fields are the managed fields of one version of an object. They never change. They are computed when they are wanted.
// Nil has none.
type Fields struct {
	entries func() []metav1.ManagedFieldsEntry
}

// Entries returns the managed fields as an object has them, in the order of an API server, or nil if there are none.
// They must not be changed.
func (f *Fields) Entries() []metav1.ManagedFieldsEntry {
	if f == nil {
		return nil
	}
	return f.entries()
}

// Given returns the managed fields of an object that has these entries: nil if there are none. The error says which
// entry is invalid. The caller may not change them later.
func Given(entries []metav1.ManagedFieldsEntry) (*Fields, error) {
	if err := managedfields.ValidateManagedFields(entries); err != nil || len(entries) == 0 {
		return nil, err
	}
	return known(entries), nil
}

func known(entries []metav1.ManagedFieldsEntry) *Fields {
	return &Fields{func() []metav1.ManagedFieldsEntry { return entries }}
}

// SameOwners reports whether two managed fields differ in their times at most. An API server does not store an object
// that differs from the stored one in nothing else. Given entries may be in another order and another notation.
func (f *Fields) SameOwners(other *Fields) bool {
	return f == other || maps.EqualFunc(f.owners(), other.owners(), (*fieldpath.Set).Equals)
}

// owners returns the fields of each entry, by the rest of it.
func (f *Fields) owners() map[metav1.ManagedFieldsEntry]*fieldpath.Set {
	owners := map[metav1.ManagedFieldsEntry]*fieldpath.Set{}
	for _, entry := range f.Entries() {
		set := fieldpath.NewSet()
		if entry.FieldsV1 != nil {
			_ = set.FromJSON(entry.FieldsV1.GetRawReader()) // It was read before.
		}
		entry.FieldsV1, entry.Time = nil, nil
		owners[entry] = set
	}
	return owners
}

// later returns entries whose times are a number of seconds later, or earlier if it is negative.
func later(entries []metav1.ManagedFieldsEntry, seconds int64) []metav1.ManagedFieldsEntry {
	moved := slices.Clone(entries)
	for i, entry := range moved {
		if entry.Time != nil {
			moved[i].Time = &metav1.Time{Time: metav1.Unix(entry.Time.Unix()+seconds, 0).UTC()}
		}
	}
	return moved
}
