// Package gotype makes and names values by their Go types.
package gotype

import "reflect"

// IsNil reports whether there is no value: nil, or a nil pointer, function or channel in an interface. A method of such
// a value has nothing to work with, so callers treat it as one that was not given. A nil slice or map is an empty
// value: a nil list of nodes is a tree without nodes.
func IsNil(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Chan, reflect.Func, reflect.Pointer:
		return v.IsNil()
	default:
		return false
	}
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

// Comparable reports whether == works for a value. It panics for a value that holds a slice, a map or a function. Some
// errors and some clients do, such as the clients of controller-runtime's interceptor.
func Comparable(value any) bool {
	return reflect.ValueOf(value).Comparable()
}
