package jsonmerge

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Field is a field of a struct as JSON knows it.
type Field struct {
	Name  string
	Index []int
	// Quoted says that a scalar is written as a string.
	Quoted bool

	tagged bool
}

// nested returns the struct in the field of target if a change of its JSON to is can be made member by member.
func (f Field) nested(target reflect.Value, is any) (reflect.Value, bool) {
	field, err := target.FieldByIndexErr(f.Index)
	if err != nil {
		return reflect.Value{}, false
	}
	_, isObject := is.(map[string]any)
	switch {
	case field.Kind() == reflect.Pointer && !field.IsNil() && isObject:
		field = field.Elem()
	case field.Kind() != reflect.Pointer && (isObject || is == nil):
	default:
		return reflect.Value{}, false
	}
	return field, isPlainStruct(field.Type())
}

var knownFields sync.Map // of reflect.Type to []Field

// FieldsOf returns the fields of a struct type that JSON knows, sorted by name. It follows the rules of encoding/json: of several
// fields with one name the least embedded one counts, of several such fields the one with a tag, and otherwise none.
func FieldsOf(t reflect.Type) []Field {
	if known, ok := knownFields.Load(t); ok {
		return known.([]Field)
	}
	candidates := map[string][]Field{}
	collectFields(t, nil, nil, candidates)
	var fields []Field
	for _, same := range candidates {
		slices.SortStableFunc(same, Field.compareDepth)
		if len(same) == 1 || same[0].compareDepth(same[1]) != 0 {
			fields = append(fields, same[0])
		}
	}
	slices.SortFunc(fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	known, _ := knownFields.LoadOrStore(t, fields)
	return known.([]Field)
}

// compareDepth puts the field first that counts; of two that are equal none does.
func (f Field) compareDepth(g Field) int {
	switch {
	case len(f.Index) != len(g.Index):
		return len(f.Index) - len(g.Index)
	case f.tagged == g.tagged:
		return 0
	case f.tagged:
		return -1
	default:
		return 1
	}
}

// collectFields adds the fields of t, which has the given index in the struct that is looked at, by their names.
func collectFields(t reflect.Type, above []reflect.Type, index []int, found map[string][]Field) {
	if slices.Contains(above, t) {
		return
	}
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		path := append(slices.Clone(index), i)
		if embedded := field.Type; name == "" && field.Anonymous {
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			if embedded.Kind() == reflect.Struct {
				collectFields(embedded, append(slices.Clone(above), t), path, found)
				continue
			}
		}
		if tag == "-" || !field.IsExported() {
			continue
		}
		f := Field{
			Name: cmp.Or(name, field.Name), Index: path, tagged: name != "",
			Quoted: slices.Contains(strings.Split(options, ","), "string"),
		}
		found[f.Name] = append(found[f.Name], f)
	}
}

// findField finds a field as decoding does: in the right spelling, or else in any case.
func findField(fields []Field, name string) (Field, bool) {
	i, exact := slices.BinarySearchFunc(fields, name, func(f Field, name string) int { return strings.Compare(f.Name, name) })
	if !exact {
		i = slices.IndexFunc(fields, func(f Field) bool { return strings.EqualFold(f.Name, name) })
	}
	if i < 0 {
		return Field{}, false
	}
	return fields[i], true
}

// ownForms are the interfaces of types that make their JSON form themselves.
var ownForms = []reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
}

// isPlainStruct reports whether t is a struct whose JSON form is made of its fields.
func isPlainStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !slices.ContainsFunc(ownForms, reflect.PointerTo(t).Implements)
}
