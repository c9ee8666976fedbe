package reconcilers

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// jsonField is a field of a struct as JSON knows it.
type jsonField struct {
	name  string
	index []int
	// quoted tells whether a scalar is written as a string.
	quoted bool
}

// nested returns the struct that is the field of target, if the trees can be followed into it, the new one being is.
func (f jsonField) nested(target reflect.Value, is any) (reflect.Value, bool) {
	field, err := target.FieldByIndexErr(f.index)
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

// copy gives target the field as fresh has it. A field of an embedded struct that is not there comes with that struct.
func (f jsonField) copy(target, fresh reflect.Value) {
	for _, i := range f.index {
		if target.Kind() == reflect.Pointer {
			if target.IsNil() {
				break
			}
			target, fresh = target.Elem(), fresh.Elem()
		}
		target, fresh = target.Field(i), fresh.Field(i)
	}
	target.Set(fresh)
}

// jsonFields are the fields of a struct type.
type jsonFields struct {
	byName map[string]jsonField
	// sorted are those that JSON knows, sorted by name.
	sorted []jsonField
}

// find finds a field as decoding does: in the right spelling, or else in any case.
func (s *jsonFields) find(name string) (jsonField, bool) {
	if f, ok := s.byName[name]; ok {
		return f, f.index != nil
	}
	for _, f := range s.sorted {
		if strings.EqualFold(f.name, name) {
			return f, true
		}
	}
	return jsonField{}, false
}

var knownFields sync.Map // of reflect.Type to *jsonFields

func fieldsOf(t reflect.Type) *jsonFields {
	if known, ok := knownFields.Load(t); ok {
		return known.(*jsonFields)
	}
	fields, _ := knownFields.LoadOrStore(t, inspectFields(t))
	return fields.(*jsonFields)
}

// inspectFields follows the rules of package encoding/json: a member of an embedded struct is one of the struct that embeds it,
// unless that has one of the same name; of several in equally deep structs it is the one with a tag, or none.
func inspectFields(t reflect.Type) *jsonFields {
	fields := &jsonFields{byName: map[string]jsonField{}}
	visited := map[reflect.Type]bool{}
	for level := []embedding{{t: t}}; len(level) > 0; {
		var deeper []embedding
		found := map[string][]candidate{}
		for _, e := range level {
			if visited[e.t] {
				continue
			}
			visited[e.t] = true
			for i := range e.t.NumField() {
				if nested, ok := e.collect(i, found); ok {
					deeper = append(deeper, nested)
				}
			}
		}
		for name, candidates := range found {
			if _, hidden := fields.byName[name]; hidden {
				continue
			}
			chosen := dominant(candidates)
			fields.byName[name] = jsonField{name: name, index: chosen.index, quoted: chosen.quoted}
			if chosen.index != nil {
				fields.sorted = append(fields.sorted, fields.byName[name])
			}
		}
		level = deeper
	}
	slices.SortFunc(fields.sorted, func(a, b jsonField) int { return strings.Compare(a.name, b.name) })
	return fields
}

// embedding is a struct type on the way from the one that embeds it.
type embedding struct {
	t     reflect.Type
	index []int
}

type candidate struct {
	index          []int
	tagged, quoted bool
}

// collect adds the field to what was found, or returns the struct that it embeds.
func (e embedding) collect(i int, found map[string][]candidate) (embedding, bool) {
	field := e.t.Field(i)
	tag := field.Tag.Get("json")
	if tag == "-" {
		return embedding{}, false
	}
	index := append(slices.Clone(e.index), i)
	name, options, _ := strings.Cut(tag, ",")
	if name == "" && field.Anonymous {
		t := field.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct {
			return embedding{t: t, index: index}, true
		}
	}
	if !field.IsExported() {
		return embedding{}, false
	}
	tagged := name != ""
	if !tagged {
		name = field.Name
	}
	found[name] = append(found[name], candidate{
		index:  index,
		tagged: tagged,
		quoted: slices.Contains(strings.Split(options, ","), "string"),
	})
	return embedding{}, false
}

// dominant returns the candidate that JSON knows, one without an index for none.
func dominant(candidates []candidate) candidate {
	if len(candidates) > 1 {
		candidates = slices.DeleteFunc(candidates, func(c candidate) bool { return !c.tagged })
	}
	if len(candidates) != 1 {
		return candidate{}
	}
	return candidates[0]
}

// ownForms are the interfaces of types that make their JSON form themselves.
var ownForms = []reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
}

// isPlainStruct tells whether t is a struct whose JSON form is that of its fields.
func isPlainStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !slices.ContainsFunc(ownForms, reflect.PointerTo(t).Implements)
}
