package reconcilers

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fieldOwner is a manager of fields as the API server knows it: by the name it applies under, and by those under which it, or
// another before it, made plain writes.
type fieldOwner struct {
	name string
	// before are the names of earlier managers whose fields are its.
	before []string
}

// creation separates the name of a field manager from the shape of what it created.
const creation = "/created-"

// maxFieldOwner is how long a name may be, for the API server to accept what is made of it.
const maxFieldOwner = 128 - len(creation) - 16

// creator is the name to create an object under. The API server notes the fields that it adds to what is created as the creator's,
// so that nobody could tell afterwards which of them the manager wanted; the shape tells.
func (o fieldOwner) creator(wanted configuration) string {
	return o.name + creation + wanted.shape()
}

// hasWritten tells whether the entry is of plain writes by the manager, or by one before it. Their fields are to become those that
// the manager applied.
func (o fieldOwner) hasWritten(entry metav1.ManagedFieldsEntry) bool {
	if entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "" {
		return false
	}
	return entry.Manager == o.name || strings.HasPrefix(entry.Manager, o.name+creation) || slices.Contains(o.before, entry.Manager)
}

func (o fieldOwner) hasApplied(entry metav1.ManagedFieldsEntry) bool {
	return entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.Manager == o.name
}

// writers are the names under which plain writes were made, sorted.
func (o fieldOwner) writers(entries []metav1.ManagedFieldsEntry) []string {
	names := sets.New[string]()
	for _, entry := range entries {
		if o.hasWritten(entry) {
			names.Insert(entry.Manager)
		}
	}
	return sets.List(names)
}

// ownership is who has which fields of an object, as far as a manager has to know.
type ownership struct {
	// kept are the manager's own fields: those that it does not want any more are to go.
	kept *fieldpath.Set
	// created are its own fields too, with those that the API server added. What it wanted when it created the object had the
	// shape of what it wants now, so none of them has to go.
	created *fieldpath.Set
	// others are those of all others.
	others *fieldpath.Set
	// unclear is true if an entry cannot be understood.
	unclear bool
}

// ownershipOf reads who has what out of the managed fields of an object.
func (o fieldOwner) ownershipOf(entries []metav1.ManagedFieldsEntry, wanted configuration) ownership {
	who := ownership{kept: &fieldpath.Set{}, created: &fieldpath.Set{}, others: &fieldpath.Set{}}
	for _, entry := range entries {
		ours := o.hasApplied(entry) || o.hasWritten(entry)
		fields, ok := fieldsOfEntry(entry)
		if !ok || entry.APIVersion != wanted["apiVersion"] {
			// Field names of another version may mean something else. Those of others are for the API server to judge.
			who.unclear = who.unclear || ours
			continue
		}
		switch {
		case !ours:
			who.others = who.others.Union(fields)
		case o.hasWritten(entry) && entry.Manager == o.creator(wanted):
			who.created = who.created.Union(fields)
		default:
			who.kept = who.kept.Union(fields)
		}
	}
	return who
}

func fieldsOfEntry(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, bool) {
	if entry.FieldsV1 == nil || entry.FieldsType != "FieldsV1" {
		return nil, false
	}
	fields := &fieldpath.Set{}
	if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return nil, false
	}
	return fields, true
}
