package managedfields

import (
	"cmp"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// HasApplied reports whether the owner has applied to an object with these managed fields.
func (o Owner) HasApplied(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == o.Name && entry.Subresource == "" &&
			entry.Operation == metav1.ManagedFieldsOperationApply
	})
}

// Makers returns the sorted names of the managers that own, by creates and updates, the owner reference with that UID:
// they wrote the object for that resource. An update that leaves the reference as it is does not make its manager one.
func Makers(entries []metav1.ManagedFieldsEntry, uid types.UID) []string {
	reference := fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(uid)))
	names := sets.New[string]()
	for _, entry := range entries {
		if fields, err := FieldsOf(&entry); err == nil && isPlainWrite(entry) && fields.Has(reference) {
			names.Insert(entry.Manager)
		}
	}
	return sets.List(names)
}

func isPlainWrite(entry metav1.ManagedFieldsEntry) bool {
	return entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
}

// Remnant is a field of an object that another manager wrote, and that is not wanted.
type Remnant struct {
	Manager string
	Path    fieldpath.Path
}

// unknown is the manager that the API server names, at a first apply, for an object that has no managed fields.
const unknown = "before-first-apply"

// Remnants returns what the makers of an object for the resource with that UID wrote by creates and updates, and is
// not wanted, without kept fields and what others own as well. It has the uppermost of such fields alone, sorted by
// manager and path. The API server may have written some as defaults. What has an unknown writer is not among them.
func (m Migration) Remnants(
	wanted Configuration, there map[string]any, entries []metav1.ManagedFieldsEntry, uid types.UID,
) []Remnant {
	var found []Remnant
	makers, body := Makers(entries, uid), wanted.body()
	makers = slices.DeleteFunc(makers, func(maker string) bool { return maker == unknown })
	for i, entry := range entries {
		fields, err := FieldsOf(&entry)
		if err != nil || !isPlainWrite(entry) || m.Owner.owns(entry) || !slices.Contains(makers, entry.Manager) {
			continue
		}
		fields = without(fields, m.keeps)
		others := fieldsBeside(entries, i)
		c := comparison{found: Differences{}}
		c.leftovers(nil, fields, body)
		for _, top := range c.tops {
			for _, path := range unshared(top, fields, others) {
				if valueAt(there, path) != nil {
					found = append(found, Remnant{entry.Manager, path})
				}
			}
		}
	}
	slices.SortFunc(found, compareRemnants)
	return slices.CompactFunc(found, func(a, b Remnant) bool { return compareRemnants(a, b) == 0 })
}

// fieldsBeside returns the fields of all entries but one.
func fieldsBeside(entries []metav1.ManagedFieldsEntry, but int) *fieldpath.Set {
	all := &fieldpath.Set{}
	for i, entry := range entries {
		if fields, err := FieldsOf(&entry); err == nil && i != but {
			all = all.Union(fields)
		}
	}
	return all
}

// unshared returns the uppermost paths, from path on, of fields of which others own nothing.
func unshared(path fieldpath.Path, fields, others *fieldpath.Set) []fieldpath.Path {
	isTheirs := false
	for _, element := range path {
		isTheirs = others.Members.Has(element)
		fields, _ = children(fields, element)
		others, _ = children(others, element)
	}
	return unsharedBelow(path, fields, others, isTheirs)
}

func unsharedBelow(path fieldpath.Path, fields, others *fieldpath.Set, isTheirs bool) (paths []fieldpath.Path) {
	switch {
	case fields.Empty() && isTheirs:
		return nil
	case others.Empty():
		return []fieldpath.Path{path}
	}
	elements := fieldpath.PathElementSet{}
	fields.Members.Iterate(elements.Insert)
	fields.Children.Iterate(elements.Insert)
	elements.Iterate(func(at fieldpath.PathElement) {
		inner, _ := children(fields, at)
		theirs, _ := children(others, at)
		paths = append(paths, unsharedBelow(append(path.Copy(), at), inner, theirs, others.Members.Has(at))...)
	})
	return paths
}

func compareRemnants(a, b Remnant) int {
	return cmp.Or(cmp.Compare(a.Manager, b.Manager), a.Path.Compare(b.Path))
}

// WithoutRemnants returns a copy of the content of an object without the fields.
func WithoutRemnants(content map[string]any, remnants []Remnant) map[string]any {
	content = runtime.DeepCopyJSON(content)
	for _, remnant := range remnants {
		removeAt(content, remnant.Path)
	}
	return content
}

// IsDefault reports whether the API server has given the field its value again, after it was removed.
func (r Remnant) IsDefault(before, after map[string]any) bool {
	return reflect.DeepEqual(valueAt(before, r.Path), valueAt(after, r.Path))
}

// String returns the path as the API server writes it. An item that is its own key would be named by its value, so it
// has the path of its list.
func (r Remnant) String() string {
	path := r.Path
	if last := len(path) - 1; path[last].Value != nil {
		path = path[:last]
	}
	return path.String()
}

// removeAt returns content without what is at the path. It changes content.
func removeAt(content any, path fieldpath.Path) any {
	switch v := content.(type) {
	case map[string]any:
		name := path[0].FieldName
		switch {
		case name == nil:
		case len(path) == 1:
			delete(v, *name)
		case v[*name] != nil:
			v[*name] = removeAt(v[*name], path[1:])
		}
	case []any:
		index := slices.IndexFunc(v, func(item any) bool { return IsItem(item, path[0]) })
		switch {
		case index < 0:
		case len(path) == 1:
			return slices.Delete(v, index, index+1)
		default:
			v[index] = removeAt(v[index], path[1:])
		}
	}
	return content
}
