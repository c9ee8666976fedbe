package gotemplate

import "reflect"

// Rough sizes, in bytes. A list that is counted has strings that were counted when they were made.
const (
	sizeOfNumber  = 8
	sizeOfElement = 16
	sizeOfEntry   = 32
)

// sizeOfScalar returns how many bytes a value has as text, roughly. ok is false if it is nested.
func sizeOfScalar(v reflect.Value) (bytes int, ok bool) {
	switch v.Kind() {
	case reflect.String:
		return v.Len(), true
	case reflect.Map, reflect.Slice, reflect.Array, reflect.Struct, reflect.Pointer, reflect.Interface:
		return 0, false
	default:
		return sizeOfNumber, true
	}
}

// measure returns how many bytes a value has as text, roughly. It is an error if these are more than are left, or if
// the value is nested too deep, as one that contains itself is. A value that is in it twice counts twice, as it does in
// a text.
func (g *Guard) measure(v reflect.Value) (int, error) {
	m := measuring{left: g.left()}
	m.value(v, 0)
	switch {
	case m.deep:
		return 0, g.tooDeep("values")
	case m.left < 0:
		return 0, g.tooLarge()
	default:
		return int(m.bytes), g.admit(g.used.Load() + m.bytes)
	}
}

// measureAll measures arguments. Most of them are scalars.
func (g *Guard) measureAll(values []any) error {
	for _, value := range values {
		if err := g.measureOne(value); err != nil {
			return err
		}
	}
	return nil
}

func (g *Guard) measureOne(value any) error {
	switch value.(type) {
	case nil, string, bool, int, int64, float64:
		return nil
	}
	_, err := g.measure(reflect.ValueOf(value))
	return err
}

type measuring struct {
	left, bytes int64
	deep        bool
}

// take returns whether to go on.
func (m *measuring) take(bytes int) bool {
	m.bytes += int64(bytes)
	m.left -= int64(bytes)
	return m.left >= 0
}

func (m *measuring) value(v reflect.Value, depth int) {
	if depth > maxNesting {
		m.deep = true
	}
	if m.deep || m.left < 0 {
		return
	}
	if bytes, ok := sizeOfScalar(v); ok {
		m.take(bytes)
		return
	}
	switch v.Kind() {
	case reflect.Map:
		for entries := v.MapRange(); m.take(sizeOfNumber) && !m.deep && entries.Next(); {
			m.value(entries.Key(), depth+1)
			m.value(entries.Value(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			m.take(v.Len())
			return
		}
		for i := 0; m.take(sizeOfNumber) && !m.deep && i < v.Len(); i++ {
			m.value(v.Index(i), depth+1)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && !m.deep && m.left >= 0; i++ {
			m.value(v.Field(i), depth+1)
		}
	case reflect.Interface:
		m.value(v.Elem(), depth)
	default:
		// Templates make no pointers. What a pointer of the operator leads to may contain itself, but is not printed.
		m.take(sizeOfNumber)
		if depth == 0 && !v.IsNil() {
			m.value(v.Elem(), depth+1)
		}
	}
}
