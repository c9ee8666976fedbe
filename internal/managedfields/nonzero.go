package managedfields

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/espalier-dev/espalier/internal/jsonmerge"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// The JSON of a Go object says more than its author did: a struct without omitempty is there though no field of it was
// set. It says less, too: an empty list that was set is not there. What is applied has the fields that were set: those
// that are not zero, and those that a pointer, an interface, a list or a map holds.

// maxDepth bounds the walk. A value that is nested deeper holds itself.
const maxDepth = 1000

var errNoJSON = errors.New("it has no form in JSON")

// nonZeroMembers returns the members of an object that were set, made of the types that come from decoding JSON. They
// share nothing with obj.
func nonZeroMembers(obj any) (map[string]any, error) {
	content, _, err := nonZero(reflect.ValueOf(obj), true, 0)
	if err != nil {
		return nil, err
	}
	members, ok := content.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%T: %w of an object", obj, errNoJSON)
	}
	return members, nil
}

// nonZero returns what was set in v. It returns false if v was not set itself: it is zero, or has only zeros, and is
// not explicit.
func nonZero(v reflect.Value, explicit bool, depth int) (content any, set bool, err error) {
	if depth > maxDepth {
		return nil, false, fmt.Errorf("nested too deeply: %w", errNoJSON)
	}
	switch v.Kind() {
	case reflect.Invalid:
		return nil, explicit, nil
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		if v.IsNil() {
			return nil, explicit, nil
		}
	default:
		if !explicit && v.IsZero() {
			return nil, false, nil
		}
	}
	if v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		return nonZero(v.Elem(), true, depth+1)
	}
	if pointer := reflect.PointerTo(v.Type()); pointer.Implements(marshaler) || pointer.Implements(textMarshaler) {
		content, err := throughJSON(v)
		return content, explicit || content != nil, err
	}
	switch v.Kind() {
	case reflect.Struct:
		members, err := structMembers(v, depth)
		return members, explicit || len(members) > 0, err
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			content, err = throughJSON(v)
			break
		}
		content, err = mapMembers(v, depth)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			content, err = throughJSON(v)
			break
		}
		content, err = listItems(v, depth)
	case reflect.Bool:
		content = v.Bool()
	case reflect.String:
		content = v.String()
	default:
		content, err = throughJSON(v)
	}
	return content, true, err
}

func structMembers(v reflect.Value, depth int) (map[string]any, error) {
	members := map[string]any{}
	for _, field := range jsonmerge.FieldsOf(v.Type()) {
		value, err := v.FieldByIndexErr(field.Index)
		if err != nil {
			// It is promoted from an embedded pointer that is nil.
			continue
		}
		content, set, err := nonZero(value, false, depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field.Name, err)
		}
		if !set {
			continue
		}
		switch content.(type) {
		case bool, int64, float64:
			if field.Quoted {
				content = fmt.Sprint(content)
			}
		}
		members[field.Name] = content
	}
	return members, nil
}

func mapMembers(v reflect.Value, depth int) (members map[string]any, err error) {
	members = make(map[string]any, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		key := iter.Key().String()
		if members[key], _, err = nonZero(iter.Value(), true, depth+1); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return members, nil
}

func listItems(v reflect.Value, depth int) (items []any, err error) {
	items = make([]any, v.Len())
	for i := range items {
		if items[i], _, err = nonZero(v.Index(i), true, depth+1); err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
	}
	return items, nil
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// throughJSON returns v as it is after encoding and decoding.
func throughJSON(v reflect.Value) (content any, err error) {
	if !v.CanAddr() {
		// A method of the pointer may make the JSON.
		addressable := reflect.New(v.Type())
		addressable.Elem().Set(v)
		v = addressable.Elem()
	}
	data, err := json.Marshal(v.Addr().Interface())
	if err == nil {
		err = utiljson.Unmarshal(data, &content)
	}
	return content, err
}
