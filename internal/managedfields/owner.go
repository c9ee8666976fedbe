package managedfields

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Owner is a manager of fields as the API server knows it.
type Owner struct {
	// Name is what it applies under, and creates objects under.
	Name string
	// Before are the names of earlier managers whose plain writes, that is creates and updates, are its own.
	Before []string
}

// Writers returns the sorted names under which the owner made plain writes.
func (o Owner) Writers(entries []metav1.ManagedFieldsEntry) []string {
	names := sets.New[string]()
	for _, entry := range entries {
		if o.owns(entry) && entry.Operation == metav1.ManagedFieldsOperationUpdate {
			names.Insert(entry.Manager)
		}
	}
	return sets.List(names)
}

// owns reports whether the fields of the entry are the owner's.
func (o Owner) owns(entry metav1.ManagedFieldsEntry) bool {
	updates := entry.Operation == metav1.ManagedFieldsOperationUpdate
	return entry.Subresource == "" && (entry.Manager == o.Name || updates && slices.Contains(o.Before, entry.Manager))
}

// fieldsOf returns the fields of an entry, and false if they cannot be understood.
func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, bool) {
	fields := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return fields, true
	}
	return fields, entry.FieldsType == "FieldsV1" && fields.FromJSON(entry.FieldsV1.GetRawReader()) == nil
}

// without returns fields without the paths for which leave returns true.
func without(fields *fieldpath.Set, leave func(fieldpath.Path) bool) *fieldpath.Set {
	rest := &fieldpath.Set{}
	fields.Iterate(func(path fieldpath.Path) {
		if !leave(path) {
			rest.Insert(path.Copy())
		}
	})
	return rest
}
