package managedfields

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// keysOf returns the sorted names of the keys by which the items of a list are owned. There are none for items that are
// owned by their values. It returns false for items that are owned otherwise, or in more than one way.
func keysOf(fields *fieldpath.Set) (keys []string, ok bool) {
	first, ok := true, true
	look := func(at fieldpath.PathElement) {
		var own []string
		if at.Key != nil {
			for _, field := range *at.Key {
				own = append(own, field.Name)
			}
		}
		ok = ok && (at.Key != nil || at.Value != nil) && (first || slices.Equal(keys, own))
		first, keys = false, own
	}
	fields.Members.Iterate(look)
	fields.Children.Iterate(look)
	return keys, ok
}

// itemElement returns the path element of an item of a list with such keys. Of the defaults that a key may have, only
// the protocol of ports is known. An item without one of its keys gets an element that no owned item has.
func itemElement(item any, keys []string) fieldpath.PathElement {
	members, ok := item.(map[string]any)
	if !ok || len(keys) == 0 {
		return fieldpath.ValueElement(value.NewValueInterface(item))
	}
	var fields []value.Field
	for _, key := range keys {
		part, ok := members[key]
		if !ok && key == "protocol" {
			part, ok = "TCP", true
		}
		if ok {
			fields = append(fields, value.Field{Name: key, Value: value.NewValueInterface(part)})
		}
	}
	return fieldpath.KeyElement(fields...)
}

// itemsByElement returns the items of a list by the texts of their path elements. Of two items with one element the
// last counts.
func itemsByElement(list []any, keys []string) map[string]any {
	items := make(map[string]any, len(list))
	for _, item := range list {
		items[itemElement(item, keys).String()] = item
	}
	return items
}
