package reconcilers

import (
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// elements are the items of a list that are owned one by one: by keys, or by their values.
type elements struct {
	// known are the elements by their text.
	known map[string]fieldpath.PathElement
	// keys are the names of the key fields, sorted.
	keys []string
	// partial finds the elements by some of the key fields: those that an item has, where the server knows a default for the
	// others.
	partial map[string]map[string][]fieldpath.PathElement
}

// elementsOf returns the items of a list that are in fields, and false if they are no such items, or keyed in more than one way.
func elementsOf(fields *fieldpath.Set) (elements, bool) {
	e := elements{known: map[string]fieldpath.PathElement{}, partial: map[string]map[string][]fieldpath.PathElement{}}
	ok := true
	add := func(at fieldpath.PathElement) {
		switch {
		case at.Key != nil:
			var keys []string
			for _, field := range *at.Key {
				keys = append(keys, field.Name)
			}
			if e.keys == nil {
				e.keys = keys
			}
			ok = ok && slices.Equal(keys, e.keys)
		case at.Value == nil:
			ok = false
		}
		e.known[at.String()] = at
	}
	fields.Members.Iterate(add)
	fields.Children.Iterate(add)
	return e, ok
}

// of returns the element that item is, and false if it is none, or may be several.
func (e elements) of(item any) (fieldpath.PathElement, bool) {
	members, ok := item.(map[string]any)
	if !ok {
		at, ok := e.known[valueElement(item).String()]
		return at, ok
	}
	var keys []string
	for _, key := range e.keys {
		if _, ok := members[key]; ok {
			keys = append(keys, key)
		}
	}
	switch {
	case len(keys) == 0:
		return fieldpath.PathElement{}, false
	case len(keys) == len(e.keys):
		at, ok := e.known[keyElement(members, keys).String()]
		return at, ok
	}
	candidates := e.by(keys)[keyElement(members, keys).String()]
	if len(candidates) != 1 {
		return fieldpath.PathElement{}, false
	}
	return candidates[0], true
}

// by returns the elements by the text of some of their keys.
func (e elements) by(keys []string) map[string][]fieldpath.PathElement {
	joined := strings.Join(keys, "\n")
	if index, ok := e.partial[joined]; ok {
		return index
	}
	index := map[string][]fieldpath.PathElement{}
	for _, at := range e.known {
		if at.Key == nil {
			continue
		}
		var fields []value.Field
		for _, field := range *at.Key {
			if slices.Contains(keys, field.Name) {
				fields = append(fields, field)
			}
		}
		text := fieldpath.KeyElement(fields...).String()
		index[text] = append(index[text], at)
	}
	e.partial[joined] = index
	return index
}

// byElement returns the items of a list by the text of the element that they are. Of two that are one the last counts.
func (e elements) byElement(list []any) map[string]any {
	items := make(map[string]any, len(list))
	for _, item := range list {
		if at, ok := e.of(item); ok {
			items[at.String()] = item
		}
	}
	return items
}

func valueElement(item any) fieldpath.PathElement {
	return fieldpath.ValueElement(value.NewValueInterface(item))
}

func keyElement(members map[string]any, keys []string) fieldpath.PathElement {
	fields := make([]value.Field, 0, len(keys))
	for _, key := range keys {
		fields = append(fields, value.Field{Name: key, Value: value.NewValueInterface(members[key])})
	}
	return fieldpath.KeyElement(fields...)
}
