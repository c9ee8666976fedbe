// Package threeway merges what several copies of one object have changed.
package threeway

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Conflict is a field that two copies have changed, each to another value.
type Conflict struct {
	// Field is the path of the field, such as .status.conditions[Ready].
	Field string
	// First and Second are the indexes of the copies. What the first one has counts.
	First, Second int
}

// Keys are the names of the fields that tell the elements of a list apart, by the type of the elements. Such lists are
// merged element by element. So are lists whose field has the tag patchMergeKey, and the conditions of unstructured
// content. Any other list is one value.
type Keys map[reflect.Type]string

// Merge changes an object so that it has what its copies have changed. All are pointers to structs of one type. A field
// that copies have changed to the same value is no conflict. What is neither exported nor below an exported field stays
// as it is. Copies must not be used afterwards, since the object may have parts of them.
func Merge(object any, keys Keys, copies ...any) []Conflict {
	m := merger{keys: keys}
	base := reflect.ValueOf(object)
	if base.Kind() != reflect.Pointer || base.Elem().Kind() != reflect.Struct {
		return nil
	}
	var changes []change
	for i, c := range copies {
		if v := reflect.ValueOf(c).Elem(); differs(base.Elem(), v) {
			changes = append(changes, change{i, v})
		}
	}
	if len(changes) > 0 {
		base.Elem().Set(m.structOf("", base.Elem(), changes))
	}
	return m.conflicts
}

type merger struct {
	keys      Keys
	conflicts []Conflict
}

// change is the value that a copy has in place of another one. It is not valid if the copy has none.
type change struct {
	by    int
	value reflect.Value
}

// value returns the value that takes the place of base, which is not valid if there is none. At has what the copies
// have there.
func (m *merger) value(path, mergeKey string, base reflect.Value, at []change) reflect.Value {
	changes := slices.DeleteFunc(slices.Clone(at), func(c change) bool { return !differs(base, c.value) })
	if len(changes) == 0 {
		return base
	}
	first := changes[0]
	same := func(c change) bool { return !differs(first.value, c.value) }
	if !slices.ContainsFunc(changes, func(c change) bool { return !same(c) }) {
		return first.value
	}
	if merged, ok := m.parts(path, mergeKey, base, changes); ok {
		return merged
	}
	for _, c := range changes[1:] {
		if !same(c) {
			m.conflicts = append(m.conflicts, Conflict{path, first.by, c.by})
			break
		}
	}
	return first.value
}

// parts merges the parts of a value. It is false for a value that has none: what is encoded as a whole, what has hidden
// fields, and what one copy has removed.
func (m *merger) parts(path, mergeKey string, base reflect.Value, changes []change) (reflect.Value, bool) {
	if slices.ContainsFunc(changes, func(c change) bool { return !c.value.IsValid() }) {
		return base, false
	}
	t := changes[0].value.Type()
	switch t.Kind() {
	case reflect.Struct:
		if !base.IsValid() {
			base = reflect.Zero(t)
		}
		if isWhole(t) {
			return base, false
		}
		return m.structOf(path, base, changes), true
	case reflect.Pointer:
		return m.pointer(path, base, changes)
	case reflect.Interface:
		return m.content(path, mergeKey, base, changes)
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return m.mapOf(path, base, changes), true
		}
	case reflect.Slice:
		return m.slice(path, mergeKey, base, changes)
	}
	return base, false
}

// isWhole reports whether a struct is one value.
func isWhole(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return true
	}
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			return true
		}
	}
	return false
}

func (m *merger) structOf(path string, base reflect.Value, changes []change) reflect.Value {
	merged := reflect.New(base.Type()).Elem()
	merged.Set(base)
	for i := range base.NumField() {
		field := base.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		at := make([]change, len(changes))
		for j, c := range changes {
			at[j] = change{c.by, c.value.Field(i)}
		}
		merged.Field(i).Set(m.value(path+nameOf(field), field.Tag.Get("patchMergeKey"), base.Field(i), at))
	}
	return merged
}

// nameOf returns what a field adds to a path.
func nameOf(field reflect.StructField) string {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case name != "":
		return "." + name
	case field.Anonymous, strings.Contains(options, "inline"), field.Type == reflect.TypeFor[map[string]any]():
		// The last one is the content of an unstructured object.
		return ""
	}
	return "." + field.Name
}

func (m *merger) pointer(path string, base reflect.Value, changes []change) (reflect.Value, bool) {
	t := changes[0].value.Type().Elem()
	at := make([]change, len(changes))
	for i, c := range changes {
		if c.value.IsNil() {
			return base, false
		}
		at[i] = change{c.by, c.value.Elem()}
	}
	if t.Kind() != reflect.Struct || isWhole(t) {
		return base, false
	}
	old := reflect.Zero(t)
	if base.IsValid() && !base.IsNil() {
		old = base.Elem()
	}
	merged := reflect.New(t)
	merged.Elem().Set(m.structOf(path, old, at))
	return merged, true
}

// content merges values of the type any, which unstructured content consists of.
func (m *merger) content(path, mergeKey string, base reflect.Value, changes []change) (reflect.Value, bool) {
	var old reflect.Value
	if base.IsValid() && !base.IsNil() {
		old = base.Elem()
	}
	at := make([]change, len(changes))
	for i, c := range changes {
		if c.value.IsNil() {
			return base, false
		}
		at[i] = change{c.by, c.value.Elem()}
	}
	t := at[0].value.Type()
	isOther := func(v reflect.Value) bool { return v.IsValid() && v.Type() != t }
	if isOther(old) || slices.ContainsFunc(at, func(c change) bool { return isOther(c.value) }) {
		return base, false
	}
	return m.parts(path, mergeKey, old, at)
}

func (m *merger) mapOf(path string, base reflect.Value, changes []change) reflect.Value {
	var names []string
	add := func(v reflect.Value) {
		if v.IsValid() {
			for _, key := range v.MapKeys() {
				names = append(names, key.String())
			}
		}
	}
	add(base)
	for _, c := range changes {
		add(c.value)
	}
	slices.Sort(names)
	t := changes[0].value.Type()
	merged := reflect.MakeMap(t)
	for _, name := range slices.Compact(names) {
		key := reflect.ValueOf(name).Convert(t.Key())
		member := func(v reflect.Value) reflect.Value {
			if !v.IsValid() {
				return v
			}
			return v.MapIndex(key)
		}
		at := make([]change, len(changes))
		for i, c := range changes {
			at[i] = change{c.by, member(c.value)}
		}
		mergeKey := ""
		if name == "conditions" && t.Elem().Kind() == reflect.Interface {
			mergeKey = "type"
		}
		if v := m.value(pathOf(path, name), mergeKey, member(base), at); v.IsValid() {
			merged.SetMapIndex(key, v)
		}
	}
	return merged
}

func pathOf(path, name string) string {
	if strings.ContainsAny(name, "./") {
		return fmt.Sprintf("%s[%s]", path, name)
	}
	return path + "." + name
}
