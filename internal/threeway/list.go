package threeway

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// slice merges lists whose elements have keys. Each element is one value. The elements stay in their order, and those
// that are added come last; if all lists are sorted by the key, so is the merged one.
func (m *merger) slice(path, mergeKey string, base reflect.Value, changes []change) (reflect.Value, bool) {
	t := changes[0].value.Type()
	if known, ok := m.keys[t.Elem()]; ok {
		mergeKey = known
	}
	if mergeKey == "" {
		return base, false
	}
	old, ok := elementsOf(base, mergeKey)
	if !ok {
		return base, false
	}
	names, sorted := slices.Clone(old.names), slices.IsSorted(old.names)
	lists := make([]elements, len(changes))
	for i, c := range changes {
		if lists[i], ok = elementsOf(c.value, mergeKey); !ok {
			return base, false
		}
		sorted = sorted && slices.IsSorted(lists[i].names)
		for _, name := range lists[i].names {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if sorted {
		slices.Sort(names)
	}
	merged := reflect.MakeSlice(t, 0, len(names))
	for _, name := range names {
		at := make([]change, len(changes))
		for i, c := range changes {
			at[i] = change{c.by, lists[i].byName[name]}
		}
		if v := m.element(fmt.Sprintf("%s[%s]", path, name), old.byName[name], at); v.IsValid() {
			merged = reflect.Append(merged, v)
		}
	}
	return merged, true
}

// element is value for what has no parts.
func (m *merger) element(path string, base reflect.Value, at []change) reflect.Value {
	var first *change
	for i, c := range at {
		switch {
		case !differs(base, c.value):
		case first == nil:
			first = &at[i]
		case differs(first.value, c.value):
			m.conflicts = append(m.conflicts, Conflict{path, first.by, c.by})
			return first.value
		}
	}
	if first == nil {
		return base
	}
	return first.value
}

// elements are those of a list by the values of their keys.
type elements struct {
	names  []string
	byName map[string]reflect.Value
}

// elementsOf returns the elements of a list. It is false if they have no key, or if two have the same.
func elementsOf(list reflect.Value, mergeKey string) (elements, bool) {
	all := elements{byName: map[string]reflect.Value{}}
	if !list.IsValid() {
		return all, true
	}
	for i := range list.Len() {
		name, ok := keyOf(list.Index(i), mergeKey)
		if _, known := all.byName[name]; !ok || known {
			return all, false
		}
		all.names = append(all.names, name)
		all.byName[name] = list.Index(i)
	}
	return all, true
}

// keyOf returns the value of the key of an element.
func keyOf(element reflect.Value, mergeKey string) (string, bool) {
	for element.Kind() == reflect.Interface || element.Kind() == reflect.Pointer {
		if element.IsNil() {
			return "", false
		}
		element = element.Elem()
	}
	var key reflect.Value
	switch {
	case element.Kind() == reflect.Struct:
		key = element.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, mergeKey) })
	case element.Kind() == reflect.Map && element.Type().Key().Kind() == reflect.String:
		key = element.MapIndex(reflect.ValueOf(mergeKey).Convert(element.Type().Key()))
	}
	if key.IsValid() && key.Kind() == reflect.Interface {
		key = key.Elem()
	}
	if !key.IsValid() {
		return "", false
	}
	return fmt.Sprint(key.Interface()), true
}
