package store

import (
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var timeType = reflect.TypeFor[metav1.Time]()

// timeful says of a Go type whether its values may have a [metav1.Time] in them, and of a struct in which fields.
type timeful struct {
	any    bool
	fields []int
}

// timefulTypes saves looking through a Go type for each object.
var timefulTypes sync.Map

// truncateTimes cuts the times in a value to seconds, in place, as their way to an API server does: JSON has whole
// seconds. Times behind an interface stay.
func truncateTimes(v reflect.Value) {
	plan := timefulOf(v.Type())
	if !plan.any {
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
		if t, ok := v.Addr().Interface().(*metav1.Time); ok {
			if t.Nanosecond() != 0 {
				*t = metav1.NewTime(t.Truncate(time.Second))
			}
			return
		}
		for _, i := range plan.fields {
			truncateTimes(v.Field(i))
		}
	}
}

func timefulOf(t reflect.Type) timeful {
	if known, ok := timefulTypes.Load(t); ok {
		return known.(timeful)
	}
	plan := timeful{any: hasTimes(t, map[reflect.Type]bool{})}
	if t.Kind() == reflect.Struct && t != timeType {
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && hasTimes(f.Type, map[reflect.Type]bool{}) {
				plan.fields = append(plan.fields, i)
			}
		}
	}
	timefulTypes.Store(t, plan)
	return plan
}

// hasTimes reports whether values of a type may have times in them. Seen has the types that are being looked through.
func hasTimes(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == timeType {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return hasTimes(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && hasTimes(f.Type, seen) {
				return true
			}
		}
	}
	return false
}
