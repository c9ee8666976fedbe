package jsondiff

import (
	"reflect"
	"slices"
)

// Accept returns got, in which the fields that differ and that are accepted by their paths are as in want. What has no
// other field than such ones is left out where want has none. Got is changed.
func Accept(got, want any, accepts func(path string) bool) any { return accept("", got, want, accepts) }

func accept(path string, got, want any, accepts func(path string) bool) any {
	switch {
	case reflect.DeepEqual(got, want):
		return got
	case accepts(path):
		return want
	}
	switch got := got.(type) {
	case map[string]any:
		fields, isMap := want.(map[string]any)
		if !isMap && want != any(Absent{}) {
			return got
		}
		before := len(got)
		for key := range got {
			set(got, key, accept(field(path, key), got[key], at(fields, key), accepts))
		}
		for key := range fields {
			if _, has := got[key]; !has && accepts(field(path, key)) {
				got[key] = fields[key]
			}
		}
		if !isMap && before > 0 && len(got) == 0 {
			return want
		}
	case []any:
		items, _ := want.([]any)
		names := itemNames(got)
		if !slices.Equal(names, itemNames(items)) {
			names = nil
		}
		for i := range min(len(got), len(items)) {
			got[i] = accept(path+"["+itemName(names, i)+"]", got[i], items[i], accepts)
		}
	}
	return got
}

// set sets a field, or removes it.
func set(fields map[string]any, key string, value any) {
	if value == any(Absent{}) {
		delete(fields, key)
		return
	}
	fields[key] = value
}
