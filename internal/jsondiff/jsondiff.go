// Package jsondiff says which fields differ in two values that were decoded from JSON.
package jsondiff

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Difference is a field that is not as it should be.
type Difference struct {
	// Path is that of the field, such as "status.conditions[Ready].reason" or `data["a.b"]`. Items of a list are
	// called by their types or names if all have one and they are the same in both lists, and by their index otherwise.
	// It is empty for the whole value.
	Path string
	// Got and Want are the values of the field; [Absent] where it is missing.
	Got, Want any
}

// String returns the difference in one line, such as "data.a is 1, not 2".
func (d Difference) String() string {
	return fmt.Sprintf("%s is %s, not %s", d.Path, Short(d.Got), Short(d.Want))
}

// Absent stands for no field.
type Absent struct{}

// Short returns a value as JSON in one line of at most 81 characters.
func Short(value any) string {
	if value == (any)(Absent{}) {
		return "absent"
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	const most = 80
	if runes := []rune(string(data)); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(data)
}

// Diff returns the fields that differ, in the order of their paths.
func Diff(got, want any) []Difference { return diff("", got, want) }

func diff(path string, got, want any) []Difference {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			return diffMaps(path, got, want)
		}
	case []any:
		if got, ok := got.([]any); ok {
			return diffLists(path, got, want)
		}
	}
	return []Difference{{path, got, want}}
}

func diffMaps(path string, got, want map[string]any) []Difference {
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	var all []Difference
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		all = append(all, diff(field(path, key), at(got, key), at(want, key))...)
	}
	return all
}

func diffLists(path string, got, want []any) []Difference {
	names := itemNames(want)
	if !slices.Equal(names, itemNames(got)) {
		names = nil
	}
	var all []Difference
	for i := range max(len(got), len(want)) {
		all = append(all, diff(path+"["+itemName(names, i)+"]", item(got, i), item(want, i))...)
	}
	return all
}

// itemName is how an item is called.
func itemName(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprint(i)
}

// itemNames returns the types or names of all items, or nil if they have none.
func itemNames(items []any) []string {
	for _, key := range []string{"type", "name"} {
		var names []string
		for _, item := range items {
			fields, _ := item.(map[string]any)
			if name, ok := fields[key].(string); ok && name != "" {
				names = append(names, name)
			}
		}
		if len(names) == len(items) {
			return names
		}
	}
	return nil
}

func at(fields map[string]any, key string) any {
	if value, ok := fields[key]; ok {
		return value
	}
	return Absent{}
}

func item(items []any, i int) any {
	if i < len(items) {
		return items[i]
	}
	return Absent{}
}

// field is the path of a field.
func field(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./[]\" "):
		return fmt.Sprintf("%s[%q]", path, key)
	case path == "":
		return key
	}
	return path + "." + key
}
