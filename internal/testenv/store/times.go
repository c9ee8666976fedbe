package store

import (
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var timeType = reflect.TypeFor[metav1.Time]()

// hasTimes says of a Go type whether its values may have a [metav1.Time] in them.
var hasTimes sync.Map

// truncateTimes cuts the times in a value to seconds, in place, as their way to an API server does: JSON has whole
// seconds.
func truncateTimes(v reflect.Value) {
	if !mayHaveTimes(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			truncateTimes(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			truncateTimes(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			truncateTimes(value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		if t, ok := reflect.TypeAssert[metav1.Time](v); ok {
			if v.CanSet() && t.Nanosecond() != 0 {
				v.Set(reflect.ValueOf(metav1.NewTime(t.Truncate(time.Second))))
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				truncateTimes(v.Field(i))
			}
		}
	}
}

// mayHaveTimes reports whether values of a type may have times in them that are not behind an interface.
func mayHaveTimes(t reflect.Type) bool {
	if known, ok := hasTimes.Load(t); ok {
		return known.(bool)
	}
	found := findTimes(t, map[reflect.Type]bool{})
	hasTimes.Store(t, found)
	return found
}

func findTimes(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == timeType {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return findTimes(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && findTimes(f.Type, seen) {
				return true
			}
		}
	}
	return false
}
