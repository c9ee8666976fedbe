package component

import (
	"fmt"
	"reflect"
	"runtime"
)

// Lookup returns the implementation of the interface I for a resource. It looks at the resource itself, then at the
// result of its method GetSpec, if that has no arguments and one result, and then at its field Spec. For a spec that is
// a struct it looks at a pointer to it, so that an embedded struct can implement I with pointer receivers. A nil
// pointer implements nothing.
//
// Lookup never panics. If GetSpec panics, Lookup treats it as missing, and [ConfigurationOf] returns an error.
func Lookup[I any](resource any) (I, bool) {
	// GetSpec may be costly.
	if found, ok := find[I]([]any{resource}); ok {
		return found, true
	}
	specs, _ := specsOf(resource)
	return find[I](specs)
}

// SpecOf returns the spec of a resource: the result of its method GetSpec, if that has no arguments and one result, or
// else its field Spec, as a pointer if it is a struct. It is nil if there is none. It is an error if GetSpec panics.
func SpecOf(resource any) (any, error) {
	specs, err := specsOf(resource)
	if err != nil || len(specs) == 0 {
		return nil, err
	}
	return specs[0], nil
}

// find returns the first of candidates that implements I.
func find[I any](candidates []any) (I, bool) {
	for _, candidate := range candidates {
		if found, ok := candidate.(I); ok && !isNilPointer(candidate) {
			return found, true
		}
	}
	var none I
	return none, false
}

// specsOf returns the values that are asked besides the resource itself, the best first.
func specsOf(resource any) ([]any, error) {
	if resource == nil || isNilPointer(resource) {
		return nil, nil
	}
	var specs []any
	add := func(v reflect.Value) {
		if spec, ok := asSpec(v); ok {
			specs = append(specs, spec)
		}
	}
	value := reflect.ValueOf(resource)
	method := value.MethodByName("GetSpec")
	if method.IsValid() && method.Type().NumIn() == 0 && method.Type().NumOut() == 1 {
		if err := guarded("GetSpec", func() { add(method.Call(nil)[0]) }); err != nil {
			return nil, err
		}
	}
	if value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		return specs, nil
	}
	if field, ok := value.Type().FieldByName("Spec"); ok {
		// The field may be promoted from an embedded pointer that is nil.
		if v, err := value.FieldByIndexErr(field.Index); err == nil {
			add(v)
		}
	}
	return specs, nil
}

// asSpec returns the value of v, as a pointer if it is a struct, or false if there is none.
func asSpec(v reflect.Value) (any, bool) {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || !v.CanInterface() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, false
	}
	if v.Kind() != reflect.Struct {
		return v.Interface(), true
	}
	if !v.CanAddr() {
		addressable := reflect.New(v.Type())
		addressable.Elem().Set(v)
		return addressable.Interface(), true
	}
	return v.Addr().Interface(), true
}

func isNilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// guarded calls f and turns a panic into an error. The error contains the value of the panic only if it comes from the
// Go runtime, which puts no content of objects into its texts.
func guarded(what string, f func()) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("%s panicked", what)
			if cause, ok := thrown.(runtime.Error); ok {
				err = fmt.Errorf("%s panicked: %w", what, cause)
			}
		}
	}()
	f()
	return nil
}
