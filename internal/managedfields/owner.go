package managedfields

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	if entry.Subresource != "" || entry.Manager == o.Name {
		return entry.Subresource == ""
	}
	name := ManagerOfCreator(entry.Manager)
	return entry.Operation == metav1.ManagedFieldsOperationUpdate && (name == o.Name || slices.Contains(o.Before, name))
}

// FieldsOf returns the fields of an entry. The set is never nil, and it is empty with an error.
func FieldsOf(entry *metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	fields := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return fields, nil
	}
	if entry.FieldsType != fieldsType {
		return fields, fmt.Errorf("the managed fields of %q have the unknown type %q", entry.Manager, entry.FieldsType)
	}
	if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return &fieldpath.Set{}, fmt.Errorf("the managed fields of %q cannot be understood: %w", entry.Manager, err)
	}
	return fields, nil
}

// SetFields gives an entry its fields.
func SetFields(entry *metav1.ManagedFieldsEntry, fields *fieldpath.Set) error {
	raw, err := fields.ToJSON()
	if err != nil {
		return fmt.Errorf("the managed fields of %q cannot be written: %w", entry.Manager, err)
	}
	entry.FieldsType, entry.FieldsV1 = fieldsType, metav1.NewFieldsV1(string(raw))
	return nil
}

// fieldsType is the only type of managed fields that there is.
const fieldsType = "FieldsV1"

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

// Migration makes fields that were written otherwise part of what its owner has applied: the API server then removes
// those that the next apply does not have. It concerns
//
//   - entries of plain writes by the owner: a create, or an update;
//   - entries of the owner in another version of the type;
//   - entries of managers whose names begin with a text in Reclaim.
//
// It is made if there is something that would otherwise stay: what is applied is the owner's anyway. With All, it is
// made whenever the owner made plain writes, so that no plain write is left.
type Migration struct {
	Owner Owner
	// Reclaim are prefixes of managers whose fields are taken. The empty prefix is that of no manager.
	Reclaim []string
	// Kept are the tokens of JSON pointers to fields that stay with nobody, and so are not removed.
	Kept [][]string
	All  bool
}

// Migrate returns the managed fields of an object as they have to be before body is applied to it, and the sorted names
// of the managers whose entries were migrated. There are none if nothing is to be migrated; the given entries are
// returned then. Entries that cannot be understood stay.
func (m Migration) Migrate(
	entries []metav1.ManagedFieldsEntry, body map[string]any,
) (migrated []metav1.ManagedFieldsEntry, from []string) {
	if m.All && len(m.Owner.Writers(entries)) == 0 {
		return entries, nil
	}
	version, _ := body["apiVersion"].(string)
	moved, applied := &fieldpath.Set{}, &fieldpath.Set{}
	first, target := -1, -1
	var written *metav1.Time
	for _, entry := range entries {
		fields, err := FieldsOf(&entry)
		switch {
		case m.isTarget(entry, version) && err != nil:
			return entries, nil
		case m.isTarget(entry, version):
			target, applied = len(migrated), fields
		case err == nil && m.moves(entry):
			if first < 0 {
				first, written = len(migrated), entry.Time
			}
			if len(m.Kept) > 0 {
				fields = without(fields, m.keeps)
			}
			moved, from = moved.Union(fields), append(from, entry.Manager)
			continue
		}
		migrated = append(migrated, entry)
	}
	if first < 0 || !m.All && !isLeftOver(moved, body) {
		return entries, nil
	}
	if target < 0 {
		target = first
		migrated = slices.Insert(migrated, target, metav1.ManagedFieldsEntry{
			Manager: m.Owner.Name, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version,
			Time: written,
		})
	}
	if SetFields(&migrated[target], moved.Union(applied)) != nil {
		return entries, nil
	}
	slices.Sort(from)
	return migrated, slices.Compact(from)
}

// isTarget reports whether the entry is what the owner has applied in that version.
func (m Migration) isTarget(entry metav1.ManagedFieldsEntry, version string) bool {
	return entry.Manager == m.Owner.Name && entry.Operation == metav1.ManagedFieldsOperationApply &&
		entry.Subresource == "" && entry.APIVersion == version
}

func (m Migration) moves(entry metav1.ManagedFieldsEntry) bool {
	return m.Owner.owns(entry) || entry.Subresource == "" && slices.ContainsFunc(m.Reclaim, func(prefix string) bool {
		return prefix != "" && strings.HasPrefix(entry.Manager, prefix)
	})
}

// keeps reports whether the field at path stays, even if it is not applied.
func (m Migration) keeps(path fieldpath.Path) bool {
	return slices.ContainsFunc(m.Kept, func(pointer []string) bool { return touches(pointer, path) })
}

// touches reports whether path is what pointer means, or above or below it. The index of a list matches every element.
func touches(pointer []string, path fieldpath.Path) bool {
	for i := range min(len(pointer), len(path)) {
		if name := path[i].FieldName; name != nil {
			if *name != pointer[i] {
				return false
			}
		} else if _, err := strconv.Atoi(pointer[i]); err != nil {
			return false
		}
	}
	return true
}

// isLeftOver reports whether there are fields that a body does not have.
func isLeftOver(fields *fieldpath.Set, body map[string]any) bool {
	c := comparison{found: Differences{}}
	c.leftovers(nil, fields, body)
	return len(c.found) > 0
}
