// Package gotype makes and names values by their Go types.
package gotype

import "reflect"

// IsNil reports whether there is no value: nil, or a nil pointer in an interface.
func IsNil(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Empty returns a pointer to an empty struct, or nil if T is no pointer to a struct.
func Empty[T any]() T {
	var none T
	if t := reflect.TypeFor[T](); t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		return reflect.New(t.Elem()).Interface().(T)
	}
	return none
}

// Name returns the name of a type, or of what it points to. For an object, that is the kind by convention.
func Name(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}
