package managedfields

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// Migration makes fields that were written otherwise part of what a manager has applied: the API server then removes
// those that its next apply does not have. It concerns
//
//   - entries of plain writes by the manager: a create, or an update;
//   - entries of the manager in another version of the type;
//   - entries of other managers, where Others says so.
type Migration struct {
	// Manager is the name that is applied under, and APIVersion the version that is applied.
	Manager    string
	APIVersion string
	// Others reports whether an entry of another manager is migrated. It may be nil.
	Others func(metav1.ManagedFieldsEntry) bool
	// Keep reports whether a field stays when its entry is migrated. It may be nil.
	Keep func(fieldpath.Path) bool
}

// Migrate returns the managed fields as they have to be before the apply, and the fields that the entries had which
// were migrated. Entries that cannot be understood stay. It returns the given entries if there is nothing to migrate.
func (m Migration) Migrate(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, *fieldpath.Set) {
	moved, applied := &fieldpath.Set{}, &fieldpath.Set{}
	first, target := -1, -1
	var migrated []metav1.ManagedFieldsEntry
	var written *metav1.Time
	for _, entry := range entries {
		fields, ok := fieldsOf(entry)
		switch {
		case m.isTarget(entry) && !ok:
			return entries, moved
		case m.isTarget(entry):
			target, applied = len(migrated), fields
		case ok && m.moves(entry):
			if first < 0 {
				first, written = len(migrated), entry.Time
			}
			if m.Keep != nil {
				fields = without(fields, m.Keep)
			}
			moved = moved.Union(fields)
			continue
		}
		migrated = append(migrated, entry)
	}
	if first < 0 {
		return entries, moved
	}
	if target < 0 {
		target = first
		migrated = slices.Insert(migrated, target, metav1.ManagedFieldsEntry{
			Manager: m.Manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: m.APIVersion,
			FieldsType: "FieldsV1", Time: written,
		})
	}
	raw, err := moved.Union(applied).ToJSON()
	if err != nil {
		return entries, &fieldpath.Set{}
	}
	migrated[target].FieldsV1 = metav1.NewFieldsV1(string(raw))
	return migrated, moved
}

// isTarget reports whether the entry is what the manager has applied.
func (m Migration) isTarget(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == m.Manager && entry.Operation == metav1.ManagedFieldsOperationApply &&
		entry.Subresource == "" && entry.APIVersion == m.APIVersion
}

func (m Migration) moves(entry metav1.ManagedFieldsEntry) bool {
	return entry.Subresource == "" && (entry.Manager == m.Manager || m.Others != nil && m.Others(entry))
}

// Migrate returns the managed fields of an object with the plain writes of the owner made its applies. It returns nil
// if there are none.
func (o Owner) Migrate(entries []metav1.ManagedFieldsEntry, wanted Configuration) ([]metav1.ManagedFieldsEntry, error) {
	if len(o.Writers(entries)) == 0 {
		return nil, nil
	}
	version, _ := wanted["apiVersion"].(string)
	migrated, _ := Migration{Manager: o.Name, APIVersion: version, Others: o.owns}.Migrate(entries)
	if left := o.Writers(migrated); len(left) > 0 {
		return nil, fmt.Errorf("the managed fields of %q cannot be understood", left)
	}
	return migrated, nil
}

// Leftover reports whether there are fields that a body does not have.
func Leftover(fields *fieldpath.Set, body map[string]any) bool {
	c := comparison{found: Differences{}}
	c.leftovers(nil, fields, body)
	return len(c.found) > 0
}

// Patch returns the patch that replaces the managed fields of an object. It is refused if the object has another
// resource version than the given one, unless that is empty.
func Patch(entries []metav1.ManagedFieldsEntry, resourceVersion string) (client.Patch, error) {
	operations := []map[string]any{{"op": "replace", "path": "/metadata/managedFields", "value": entries}}
	if resourceVersion != "" {
		// Replaced rather than tested, another version is a conflict and not an invalid request.
		version := map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": resourceVersion}
		operations = append(operations, version)
	}
	data, err := json.Marshal(operations)
	return client.RawPatch(types.JSONPatchType, data), err
}
