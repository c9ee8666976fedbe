package literal

import (
	"reflect"
	"strconv"
)

// Text is written as what it returns.
type Text func(w *Writer) string

// Changes makes a value equal to another one of its type, and returns the statements that do so to a variable. Fields
// and keys that a statement can name are changed alone. Skip leaves fields out, by their names as in "o.Status.Phase".
func (w *Writer) Changes(variable string, value, want reflect.Value, skip func(path string) bool) []string {
	if skip(variable) || same(value, want) {
		return nil
	}
	_, known := w.wellKnown(want)
	switch kind := value.Kind(); {
	case known:
	case kind == reflect.Struct:
		var all []string
		for i := range value.NumField() {
			field := value.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			path := variable + "." + field.Name
			if field.Name == "ObjectMeta" {
				path = variable
			}
			all = append(all, w.Changes(path, value.Field(i), want.Field(i), skip)...)
		}
		return all
	case kind == reflect.Pointer && !value.IsNil() && !want.IsNil() && value.Elem().Kind() == reflect.Struct:
		return w.Changes(variable, value.Elem(), want.Elem(), skip)
	case kind == reflect.Map && value.Len() > 0 && want.Len() > 0 && value.Type().Key().Kind() == reflect.String:
		return w.changesOfMap(variable, value, want)
	}
	value.Set(want)
	return []string{variable + " = " + w.OfValue(want)}
}

func (w *Writer) changesOfMap(variable string, value, want reflect.Value) []string {
	var all []string
	for _, key := range sortedKeys(want) {
		if old := value.MapIndex(key); !old.IsValid() || !same(old, want.MapIndex(key)) {
			value.SetMapIndex(key, want.MapIndex(key))
			all = append(all, variable+"["+strconv.Quote(key.String())+"] = "+w.OfValue(want.MapIndex(key)))
		}
	}
	for _, key := range sortedKeys(value) {
		if !want.MapIndex(key).IsValid() {
			value.SetMapIndex(key, reflect.Value{})
			all = append(all, "delete("+variable+", "+strconv.Quote(key.String())+")")
		}
	}
	return all
}

// same reports whether values are written alike.
func same(a, b reflect.Value) bool { return (&Writer{}).OfValue(a) == (&Writer{}).OfValue(b) }
