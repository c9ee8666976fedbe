package check

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// transitionTime is the JSON name of the transition time of a condition.
const transitionTime = "lastTransitionTime"

// WithoutTransitionTimes returns a patch in JSON without the transition times of conditions. An operation of a JSON
// patch that writes one is left without its value. Other patches are returned as they are.
func WithoutTransitionTimes(patch []byte) []byte {
	if !bytes.Contains(patch, []byte(transitionTime)) || !json.Valid(patch) {
		return patch
	}
	content := FromJSON(patch)
	clearTransitionTimes(reflect.ValueOf(content))
	operations, _ := content.([]any)
	for _, operation := range operations {
		members, _ := operation.(map[string]any)
		if path, _ := members["path"].(string); strings.HasSuffix(path, "/"+transitionTime) {
			delete(members, "value")
		}
	}
	short, err := json.Marshal(content)
	if err != nil {
		return patch
	}
	return short
}

// clearTransitionTimes clears the fields that IgnoreLastTransitionTime ignores.
func clearTransitionTimes(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			clearTransitionTimes(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			clearTransitionTimes(v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if it.Key().Kind() == reflect.String && it.Key().String() == transitionTime {
				v.SetMapIndex(it.Key(), reflect.Value{})
				continue
			}
			clearTransitionTimes(it.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			switch {
			case !field.IsExported() || !v.Field(i).CanSet():
			case strings.HasSuffix(field.Name, "LastTransitionTime"):
				v.Field(i).SetZero()
			default:
				clearTransitionTimes(v.Field(i))
			}
		}
	}
}
