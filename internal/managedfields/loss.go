package managedfields

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Loss is a field of a configuration that its manager has lost to others.
type Loss struct {
	// Path is the path of the field as the API server writes it, such as .data.key.
	Path string
	// Pointer is the JSON pointer to the field in the configuration, such as /data/key. It is empty if there is none.
	Pointer string
	// Managers are the managers that own the field now, sorted. There are none if the field was removed.
	Managers []string
}

// Losses returns the fields of a configuration that its manager does not own in an object with the given content and
// managed fields. If it owns all of them, or there are no managed fields, it returns those with another value. They are
// sorted by path. It returns none if the managed fields cannot be understood.
func Losses(
	wanted Configuration, there map[string]any, entries []metav1.ManagedFieldsEntry, owner Owner,
) []Loss {
	ours, theirs, others := &fieldpath.Set{}, &fieldpath.Set{}, []metav1.ManagedFieldsEntry(nil)
	for _, entry := range entries {
		fields, err := FieldsOf(&entry)
		switch {
		case !owner.owns(entry):
			others = append(others, entry)
			theirs = theirs.Union(fields)
		case err != nil:
			return nil
		default:
			ours = ours.Union(fields)
		}
	}
	c := comparison{unowned: len(entries) == 0, found: Differences{}, added: addedTo(wanted["apiVersion"])}
	c.members(nil, wanted.body(), ours, &fieldpath.Set{}, there)
	paths := c.notOwned
	if len(paths) == 0 {
		paths = c.changed
	}
	losses := make([]Loss, 0, len(paths))
	for _, path := range paths {
		for _, part := range partsOf(path, wanted, theirs) {
			losses = append(losses, Loss{part.String(), pointerTo(part, wanted), managersOf(part, others)})
		}
	}
	slices.SortFunc(losses, func(a, b Loss) int { return strings.Compare(a.Path, b.Path) })
	return losses
}

// partsOf returns the parts of what is at path in the configuration that others own, or path itself if they own all of
// it or none. Parts are members of maps.
func partsOf(path fieldpath.Path, wanted Configuration, theirs *fieldpath.Set) []fieldpath.Path {
	var at any = map[string]any(wanted)
	for _, element := range path {
		members, ok := at.(map[string]any)
		if !ok || element.FieldName == nil {
			return []fieldpath.Path{path}
		}
		at = members[*element.FieldName]
		theirs, _ = children(theirs, element)
	}
	if parts := partsBelow(path, at, theirs); len(parts) > 0 {
		return parts
	}
	return []fieldpath.Path{path}
}

func partsBelow(path fieldpath.Path, at any, theirs *fieldpath.Set) (parts []fieldpath.Path) {
	members, _ := at.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		element := fieldpath.FieldNameElement(name)
		inner, nested := children(theirs, element)
		part := append(path.Copy(), element)
		below := partsBelow(part, members[name], inner)
		if len(below) == 0 && (nested || theirs.Members.Has(element)) {
			below = []fieldpath.Path{part}
		}
		parts = append(parts, below...)
	}
	return parts
}

// managersOf returns who owns the field at path, a part of it, or the whole that it is part of.
func managersOf(path fieldpath.Path, entries []metav1.ManagedFieldsEntry) []string {
	var names []string
	for _, entry := range entries {
		fields, err := FieldsOf(&entry)
		if err != nil {
			continue
		}
		fields.Iterate(func(owned fieldpath.Path) {
			for i := range min(len(owned), len(path)) {
				// An index stands for an item of which only the place in the configuration is known.
				if path[i].Index == nil && !owned[i].Equals(path[i]) {
					return
				}
			}
			names = append(names, entry.Manager)
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// pointerTo returns the JSON pointer to what is at path in the configuration.
func pointerTo(path fieldpath.Path, wanted Configuration) string {
	var pointer strings.Builder
	var at any = map[string]any(wanted)
	for _, element := range path {
		var token string
		switch {
		case element.FieldName != nil:
			token = *element.FieldName
			members, _ := at.(map[string]any)
			at = members[token]
		default:
			items, _ := at.([]any)
			index := slices.IndexFunc(items, func(item any) bool { return IsItem(item, element) })
			if element.Index != nil {
				index = *element.Index
			}
			if index < 0 || index >= len(items) {
				return ""
			}
			token, at = strconv.Itoa(index), items[index]
		}
		pointer.WriteString("/" + jsonpointer.Escape(token))
	}
	return pointer.String()
}

// IsItem reports whether the item of a list is the one that an element of a path means, by its keys or its value.
func IsItem(item any, element fieldpath.PathElement) bool {
	if element.Value != nil {
		return value.Equals(*element.Value, value.NewValueInterface(item))
	}
	if element.Key == nil {
		return false
	}
	var keys []string
	for _, key := range *element.Key {
		keys = append(keys, key.Name)
	}
	return itemElement(item, keys).Equals(element)
}
