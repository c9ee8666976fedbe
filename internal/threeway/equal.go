package threeway

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// differs reports whether two values differ; what is not valid differs from what is. A time is the same in each zone,
// a quantity in each notation, and an integer in unstructured content in each Go type.
func differs(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() != b.IsValid()
	}
	return !reflect.DeepEqual(a.Interface(), b.Interface()) && !isEqual(a, b)
}

// isEqual compares two valid values. It is also false for equal ones with fields that are not exported.
func isEqual(a, b reflect.Value) bool {
	if a.Type() != b.Type() {
		return a.CanInt() && b.CanInt() && a.Int() == b.Int()
	}
	switch a.Kind() {
	case reflect.Struct:
		return isEqualStruct(a, b)
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
		return isEqual(a.Elem(), b.Elem())
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() || a.Kind() == reflect.Slice && a.IsNil() != b.IsNil() {
			return false
		}
		for i := range a.Len() {
			if !isEqual(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() || a.IsNil() != b.IsNil() {
			return false
		}
		for _, key := range a.MapKeys() {
			if other := b.MapIndex(key); !other.IsValid() || !isEqual(a.MapIndex(key), other) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

func isEqualStruct(a, b reflect.Value) bool {
	switch left := a.Interface().(type) {
	case time.Time:
		return left.Equal(b.Interface().(time.Time))
	case resource.Quantity:
		return left.Cmp(b.Interface().(resource.Quantity)) == 0
	}
	for i := range a.NumField() {
		if !a.Type().Field(i).IsExported() {
			return reflect.DeepEqual(a.Interface(), b.Interface())
		}
	}
	for i := range a.NumField() {
		if !isEqual(a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}
