package managedfields

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Changes says which fields were written to make an object agree with a configuration, and why, such as
// ".spec.replicas differs". Before and after are the content of the object, and entries the managed fields that it had.
// The texts are sorted, and have no values but those of the keys of lists.
//
// A field that has the same value after the write is not named. So no text tells of defaults that the API server sets
// again, of what it keeps in another way than it is wanted, and of what only has another owner.
func Changes(
	wanted Configuration, before, after map[string]any, entries []metav1.ManagedFieldsEntry, owner Owner,
) []string {
	c := compare(wanted, before, entries, owner, false)
	var changes []string
	add := func(paths []fieldpath.Path, why string) {
		for _, path := range paths {
			why := why
			if last := len(path) - 1; path[last].Index != nil || path[last].Value != nil {
				// The place of an item in the configuration says nothing about the object, and an item that is its own
				// key would be named by its value.
				path, why = path[:last], differs
			}
			was, is := valueAt(before, path), valueAt(after, path)
			switch {
			case reflect.DeepEqual(was, is):
			case was == nil:
				changes = append(changes, path.String()+" is missing")
			default:
				changes = append(changes, path.String()+" "+why)
			}
		}
	}
	add(c.changed, differs)
	add(c.notOwned, "was set by another client")
	// What is part of another one is not named.
	add(slices.DeleteFunc(slices.Clone(c.left), func(part fieldpath.Path) bool {
		return slices.ContainsFunc(c.left, func(whole fieldpath.Path) bool {
			return len(whole) < len(part) && part[:len(whole)].Equals(whole)
		})
	}), "is not desired")
	slices.Sort(changes)
	return slices.Compact(changes)
}

// valueAt returns what content has at path, or nil.
func valueAt(content map[string]any, path fieldpath.Path) any {
	var at any = content
	for _, element := range path {
		if element.FieldName != nil {
			members, _ := at.(map[string]any)
			at = members[*element.FieldName]
			continue
		}
		items, _ := at.([]any)
		index := slices.IndexFunc(items, func(item any) bool { return IsItem(item, element) })
		if index < 0 {
			return nil
		}
		at = items[index]
	}
	return at
}
