package literal

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// expression returns v as an expression that is assignable to want; want is nil in a place without a type.
func (w *Writer) expression(v reflect.Value, want reflect.Type, depth int) node {
	if !v.IsValid() || depth > maxDepth {
		return leaf("nil")
	}
	if special, ok := w.wellKnown(v); ok {
		return special
	}
	switch v.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		if !v.IsNil() {
			w.problems = append(w.problems, fmt.Sprintf("a %s cannot be written", v.Type()))
		}
		return leaf("nil")
	case reflect.Interface:
		if v.IsNil() {
			return leaf("nil")
		}
		return w.expression(v.Elem(), v.Type(), depth)
	case reflect.Pointer:
		return w.pointer(v, depth)
	case reflect.Struct:
		return node{open: w.nameOf(v.Type()) + "{", elements: w.fieldsOf(v, depth), close: "}"}
	case reflect.Map:
		if v.IsNil() {
			return leaf("nil")
		}
		return node{open: w.nameOf(v.Type()) + "{", elements: w.entriesOf(v, depth), close: "}"}
	case reflect.Slice, reflect.Array:
		return w.list(v, depth)
	default:
		return leaf(w.basic(v, want))
	}
}

// pointer writes a pointer to a composite as &T{...} and any other as new(...).
func (w *Writer) pointer(v reflect.Value, depth int) node {
	if v.IsNil() {
		return leaf("nil")
	}
	n := w.expression(v.Elem(), nil, depth+1)
	switch {
	case strings.HasSuffix(n.open, "{"):
		n.open = "&" + n.open
		return n
	case n.text == "nil":
		return leaf("new(" + w.nameOf(v.Elem().Type()) + ")")
	}
	return node{open: "new(", elements: []node{n}, close: ")"}
}

func (w *Writer) fieldsOf(v reflect.Value, depth int) []node {
	var fields []node
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		if !field.IsExported() || value.IsZero() {
			continue
		}
		n := w.expression(value, field.Type, depth+1)
		n.label = field.Name + ": "
		fields = append(fields, n)
	}
	return fields
}

func (w *Writer) entriesOf(v reflect.Value, depth int) []node {
	type entry struct {
		key   string
		value reflect.Value
	}
	var entries []entry
	for it := v.MapRange(); it.Next(); {
		entries = append(entries, entry{w.expression(it.Key(), v.Type().Key(), depth+1).flat(), it.Value()})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	nodes := make([]node, len(entries))
	for i, e := range entries {
		nodes[i] = w.element(e.value, v.Type().Elem(), depth)
		nodes[i].label = e.key + ": "
	}
	return nodes
}

func (w *Writer) list(v reflect.Value, depth int) node {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return leaf("nil")
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return leaf(w.nameOf(v.Type()) + "(" + quote(string(v.Bytes())) + ")")
	}
	elements := make([]node, v.Len())
	for i := range v.Len() {
		elements[i] = w.element(v.Index(i), v.Type().Elem(), depth)
	}
	return node{open: w.nameOf(v.Type()) + "{", elements: elements, close: "}"}
}

// element writes an element of a list or a map, without the type of a struct.
func (w *Writer) element(v reflect.Value, want reflect.Type, depth int) node {
	n := w.expression(v, want, depth+1)
	if v.Kind() == reflect.Struct && n.open == w.nameOf(v.Type())+"{" {
		n.open = "{"
	}
	return n
}

// basic writes a value without elements, with its type where the place does not give it that type.
func (w *Writer) basic(v reflect.Value, want reflect.Type) string {
	text, untyped := scalar(v)
	if want == v.Type() || v.Type() == untyped {
		return text
	}
	return w.nameOf(v.Type()) + "(" + text + ")"
}

// scalar returns a constant, and the type that it has by default.
func scalar(v reflect.Value) (string, reflect.Type) {
	switch {
	case v.Kind() == reflect.String:
		return quote(v.String()), reflect.TypeFor[string]()
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool()), reflect.TypeFor[bool]()
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), reflect.TypeFor[int]()
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), reflect.TypeFor[int]()
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'g', -1, 64), nil
	case v.CanComplex():
		return fmt.Sprint(v.Complex()), nil
	default:
		return "nil", v.Type()
	}
}

// quote writes a string literal, a raw one if the text has quotes, as JSON has.
func quote(s string) string {
	if quoted := strconv.Quote(s); len(quoted) == len(s)+2 || !strconv.CanBackquote(s) {
		return quoted
	}
	return "`" + s + "`"
}

// sortedKeys returns the keys of a map whose keys are texts.
func sortedKeys(m reflect.Value) []reflect.Value {
	return slices.SortedFunc(slices.Values(m.MapKeys()), func(a, b reflect.Value) int {
		return cmp.Compare(a.String(), b.String())
	})
}
