package gotemplate

import (
	"reflect"
	"text/template"

	"github.com/mitchellh/copystructure"
)

// set does what set of Sprig does, unless a value would contain itself. Whoever writes such a value as text does not
// end.
func (g *Guard) set(values map[string]any, key string, value any) (map[string]any, error) {
	switch value.(type) {
	case nil, string, bool, int, int64, float64:
	default:
		if err := g.measureOne(value); err != nil {
			return nil, err
		}
		if holds(reflect.ValueOf(value), parts{reflect.ValueOf(values).Pointer(): {}}) {
			return nil, g.fail(ErrLimit, ofSize, " puts a value into itself")
		}
	}
	values[key] = value
	return values, g.charge(0)
}

type (
	merging     = func(map[string]any, ...map[string]any) any
	mustMerging = func(map[string]any, ...map[string]any) (any, error)
)

func (g *Guard) replaceMerge(functions, replaced template.FuncMap) {
	for _, name := range []string{"merge", "mergeOverwrite"} {
		f := call[merging](functions, name)
		replaced[name] = g.merge(func(into map[string]any, from ...map[string]any) (any, error) {
			return f(into, from...), nil
		})
	}
	for _, name := range []string{"mustMerge", "mustMergeOverwrite"} {
		replaced[name] = g.merge(call[mustMerging](functions, name))
	}
}

// merge copies what shares maps with into, so that nothing comes to contain itself.
func (g *Guard) merge(f mustMerging) mustMerging {
	return func(into map[string]any, from ...map[string]any) (any, error) {
		size, err := g.measure(reflect.ValueOf(into))
		if err != nil {
			return nil, err
		}
		own := parts{}
		own.add(reflect.ValueOf(into))
		separate := make([]map[string]any, len(from))
		for i, values := range from {
			bytes, err := g.measure(reflect.ValueOf(values))
			if err != nil {
				return nil, err
			}
			size += bytes
			separate[i] = values
			if holds(reflect.ValueOf(values), own) {
				copied, err := copystructure.Copy(values)
				if err != nil {
					return nil, err
				}
				separate[i], _ = copied.(map[string]any)
			}
			// The next one must not share with what is now in it.
			own.add(reflect.ValueOf(separate[i]))
		}
		if err := g.charge(size); err != nil {
			return nil, err
		}
		return f(into, separate...)
	}
}

// parts are the maps within a value.
type parts map[uintptr]struct{}

func (p parts) add(v reflect.Value) {
	walk(v, func(part uintptr) bool {
		_, known := p[part]
		p[part] = struct{}{}
		return !known
	})
}

// holds reports whether one of the parts is in a value.
func holds(v reflect.Value, of parts) bool {
	found, seen := false, parts{}
	walk(v, func(part uintptr) bool {
		if _, ok := of[part]; ok {
			found = true
		}
		_, known := seen[part]
		seen[part] = struct{}{}
		return !found && !known
	})
	return found
}

// walk visits the maps in a value, whose nesting was measured, and goes into a map if visit says so.
func walk(v reflect.Value, visit func(part uintptr) bool) {
	switch v.Kind() {
	case reflect.Interface:
		walk(v.Elem(), visit)
	case reflect.Map:
		if !visit(v.Pointer()) {
			return
		}
		for entries := v.MapRange(); entries.Next(); {
			walk(entries.Value(), visit)
		}
	case reflect.Slice, reflect.Array:
		switch v.Type().Elem().Kind() {
		case reflect.Interface, reflect.Map, reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i), visit)
			}
		}
	}
}
