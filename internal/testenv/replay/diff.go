package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// difference is a field that is not as it should be.
type difference struct {
	// path is that of the field, such as "status.conditions[Ready].reason" or `data["a.b"]`.
	path      string
	got, want any
}

func (d difference) String() string {
	return fmt.Sprintf("%s is %s, not %s", d.path, short(d.got), short(d.want))
}

// absent stands for no field.
type absent struct{}

// short is a value in one line that is not long.
func short(value any) string {
	if value == (any)(absent{}) {
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

// diff returns what differs in two values that were decoded from JSON, in the order of their paths.
func diff(path string, got, want any) []difference {
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
	return []difference{{path, got, want}}
}

func diffMaps(path string, got, want map[string]any) []difference {
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	var all []difference
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		all = append(all, diff(field(path, key), at(got, key), at(want, key))...)
	}
	return all
}

func diffLists(path string, got, want []any) []difference {
	names := itemNames(want)
	same := slices.Equal(names, itemNames(got))
	var all []difference
	for i := range max(len(got), len(want)) {
		name := fmt.Sprint(i)
		if same && i < len(names) {
			name = names[i]
		}
		all = append(all, diff(path+"["+name+"]", item(got, i), item(want, i))...)
	}
	return all
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
	return absent{}
}

func item(items []any, i int) any {
	if i < len(items) {
		return items[i]
	}
	return absent{}
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
