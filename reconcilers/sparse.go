package reconcilers

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/espalier-dev/espalier/internal/jsonmerge"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// The JSON of a Go object says more than its author did: a struct without omitempty is there though nobody filled it in, and an
// empty list that somebody did set is not. The sparse form says what was set: it leaves out zero values, save those that a pointer,
// an interface, a list or a map holds, for these were put there.

// maxSparseDepth bounds the walk: what is nested deeper holds itself.
const maxSparseDepth = 1000

var errNoJSON = errors.New("it has no form in JSON")

// sparseOf returns the sparse form of an object, made of the types that come from decoding JSON. It shares nothing with obj.
func sparseOf(obj any) (map[string]any, error) {
	content, _, err := sparse(reflect.ValueOf(obj), true, 0)
	if err != nil {
		return nil, err
	}
	members, ok := content.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%T: %w of an object", obj, errNoJSON)
	}
	return members, nil
}

// sparse returns the sparse form of v, and false if v was not set. What is put where it is set even if it is zero is explicit.
func sparse(v reflect.Value, explicit bool, depth int) (content any, set bool, err error) {
	if depth > maxSparseDepth {
		return nil, false, fmt.Errorf("nested too deeply: %w", errNoJSON)
	}
	switch v.Kind() {
	case reflect.Invalid:
		return nil, explicit, nil
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, explicit, nil
		}
		return sparse(v.Elem(), true, depth+1)
	case reflect.Map, reflect.Slice:
		if v.IsNil() {
			return nil, explicit, nil
		}
	default:
		if !explicit && v.IsZero() {
			return nil, false, nil
		}
	}
	if content, ok, err := marshalled(v); ok || err != nil {
		return content, explicit || content != nil, err
	}
	switch v.Kind() {
	case reflect.Struct:
		members, err := sparseStruct(v, depth)
		return members, explicit || len(members) > 0, err
	case reflect.Map:
		members, err := sparseMap(v, depth)
		return members, true, err
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			content, err := decoded(v.Bytes())
			return content, true, err
		}
		items, err := sparseItems(v, depth)
		return items, true, err
	default:
		content, err := scalar(v)
		return content, true, err
	}
}

func sparseStruct(v reflect.Value, depth int) (map[string]any, error) {
	members := map[string]any{}
	for _, field := range jsonmerge.FieldsOf(v.Type()) {
		value, err := v.FieldByIndexErr(field.Index)
		if err != nil {
			// It is promoted from an embedded pointer that is nil.
			continue
		}
		content, set, err := sparse(value, false, depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field.Name, err)
		}
		if !set {
			continue
		}
		if field.Quoted {
			content = quoted(content)
		}
		members[field.Name] = content
	}
	return members, nil
}

func sparseMap(v reflect.Value, depth int) (map[string]any, error) {
	members := make(map[string]any, v.Len())
	for iter := v.MapRange(); iter.Next(); {
		key, err := mapKey(iter.Key())
		if err != nil {
			return nil, err
		}
		content, _, err := sparse(iter.Value(), true, depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		members[key] = content
	}
	return members, nil
}

func sparseItems(v reflect.Value, depth int) ([]any, error) {
	items := make([]any, v.Len())
	for i := range items {
		content, _, err := sparse(v.Index(i), true, depth+1)
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
		items[i] = content
	}
	return items, nil
}

func scalar(v reflect.Value) (any, error) {
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.String:
		return v.String(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if n := v.Uint(); n <= math.MaxInt64 {
			return int64(n), nil
		}
		return float64(v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			break
		}
		if whole := int64(f); float64(whole) == f && math.Abs(f) < 1<<53 {
			return whole, nil
		}
		return f, nil
	}
	return nil, fmt.Errorf("%s: %w", v.Type(), errNoJSON)
}

func mapKey(v reflect.Value) (string, error) {
	if v.Kind() == reflect.String {
		return v.String(), nil
	}
	if text, ok := v.Interface().(encoding.TextMarshaler); ok {
		key, err := text.MarshalText()
		return string(key), err
	}
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), nil
	default:
		return "", fmt.Errorf("a key of type %s: %w", v.Type(), errNoJSON)
	}
}

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
)

// marshalled returns what a type that knows its own JSON makes of v, and false if v is of no such type.
func marshalled(v reflect.Value) (any, bool, error) {
	t := v.Type()
	pointer := reflect.PointerTo(t)
	if !pointer.Implements(marshalerType) && !pointer.Implements(textMarshalerType) {
		return nil, false, nil
	}
	if !t.Implements(marshalerType) && !t.Implements(textMarshalerType) {
		boxed := reflect.New(t)
		boxed.Elem().Set(v)
		v = boxed
	}
	content, err := decoded(v.Interface())
	return content, true, err
}

// decoded returns v by way of its JSON.
func decoded(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var content any
	err = utiljson.Unmarshal(data, &content)
	return content, err
}

// quoted is what the option string of a JSON tag makes of a scalar.
func quoted(content any) any {
	switch content.(type) {
	case bool, int64, float64:
		return fmt.Sprint(content)
	default:
		return content
	}
}
