package generator

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// referencePlan says where the spec of a type of resources may have references. It is made once for each type.
type referencePlan struct {
	// spec is the index of the field Spec.
	spec []int
	// types are those of the spec that contain references, and with true those that are references. It is empty if the
	// spec cannot have any.
	types map[reflect.Type]bool
	// kinds are those of the objects that the references of this package refer to.
	kinds []schema.GroupVersionKind
}

var referencePlans sync.Map

// referencePlanOf returns the plan for a resource. The field Spec is the only one that counts.
func referencePlanOf(resource any) *referencePlan {
	t := reflect.TypeOf(resource)
	if known, ok := referencePlans.Load(t); ok {
		return known.(*referencePlan)
	}
	plan := &referencePlan{}
	if t != nil && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		if field, ok := t.Elem().FieldByName("Spec"); ok && field.IsExported() {
			plan.spec = field.Index
			plan.survey(field.Type)
		}
	}
	known, _ := referencePlans.LoadOrStore(t, plan)
	return known.(*referencePlan)
}

// HasReferences reports whether the spec of a resource of this type can have references, see [Reference].
func HasReferences(resource any) bool {
	return len(referencePlanOf(resource).types) > 0
}

// ReferencedKinds returns the kinds of objects that references of this package in the spec of a resource of this type
// can refer to: ConfigMap, Secret, both or none.
func ReferencedKinds(resource any) []schema.GroupVersionKind {
	return slices.Clone(referencePlanOf(resource).kinds)
}

// survey finds out which types below t have references.
func (p *referencePlan) survey(t reflect.Type) {
	users, kinds := map[reflect.Type][]reflect.Type{}, map[string]bool{}
	p.types = map[reflect.Type]bool{}
	var found []reflect.Type
	var visit func(t, user reflect.Type)
	visit = func(t, user reflect.Type) {
		known, seen := users[t]
		users[t] = append(known, user)
		if seen {
			return
		}
		if refers, to := referenceType(t); refers {
			p.types[t] = true
			for _, kind := range to {
				kinds[kind] = true
			}
			return
		}
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			visit(t.Elem(), t)
		case reflect.Struct:
			for i := range t.NumField() {
				if field := t.Field(i); descends(field) {
					visit(field.Type, t)
				}
			}
		default:
		}
	}
	visit(t, nil)
	for t := range p.types {
		found = append(found, users[t]...)
	}
	for len(found) > 0 {
		t := found[0]
		found = found[1:]
		if _, known := p.types[t]; t != nil && !known {
			p.types[t] = false
			found = append(found, users[t]...)
		}
	}
	for _, kind := range []string{kindConfigMap, kindSecret} {
		if kinds[kind] {
			p.kinds = append(p.kinds, corev1.SchemeGroupVersion.WithKind(kind))
		}
	}
}

// descends reports whether the walk looks into a field. Exported fields of an embedded struct count also if the type of
// the struct is not exported.
func descends(field reflect.StructField) bool {
	embedded := field.Anonymous && field.Type.Kind() == reflect.Struct
	return (field.IsExported() || embedded) && field.Tag.Get("reference") != "-"
}

// referenceType reports whether t is a reference, and the kinds of objects that it refers to as far as they are known.
func referenceType(t reflect.Type) (refers bool, kinds []string) {
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return false, nil
	}
	switch reference := reflect.New(t).Interface().(type) {
	case objectReference:
		return true, reference.kinds()
	case Reference:
		return true, nil
	}
	return false, nil
}

// maxReferenceDepth is how deep references are looked for.
const maxReferenceDepth = 100

var errTooDeep = errors.New("is nested too deeply, or contains itself")

// referenceWalk visits the references of a spec. A reference that several pointers lead to is visited once.
type referenceWalk struct {
	plan *referencePlan
	// visit is called with a pointer to each reference, and the tag fallbackKeys of its field.
	visit func(path func() string, reference any, fallback string)
	fail  func(path func() string, err error)

	path    []step
	visited map[any]bool
	// tooDeep ends the walk.
	tooDeep bool
}

// step is a field, if it has a name, or an index, or a key of a map.
type step struct {
	field string
	index int
	key   reflect.Value
}

// walk visits what is in v, which is addressable.
func (w *referenceWalk) walk(v reflect.Value, fallback string) {
	t := v.Type()
	refers, contains := w.plan.types[t]
	if !contains || w.tooDeep {
		return
	}
	if w.tooDeep = len(w.path) > maxReferenceDepth; w.tooDeep {
		w.fail(w.text, errTooDeep)
		return
	}
	if refers {
		// A reference of a type that is not exported may be embedded.
		if v.CanInterface() {
			w.visit(w.text, v.Addr().Interface(), fallback)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || w.visited[v.Interface()] {
			return
		}
		if w.visited == nil {
			w.visited = map[any]bool{}
		}
		w.visited[v.Interface()] = true
		w.walk(v.Elem(), fallback)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			w.down(step{index: i}, v.Index(i), fallback)
		}
	case reflect.Map:
		w.walkMap(v, fallback)
	case reflect.Struct:
		for i := range t.NumField() {
			if field := t.Field(i); descends(field) {
				name := fieldName(field)
				if name == "" {
					w.walk(v.Field(i), field.Tag.Get("fallbackKeys"))
				} else {
					w.down(step{field: name}, v.Field(i), field.Tag.Get("fallbackKeys"))
				}
			}
		}
	default:
	}
}

func (w *referenceWalk) down(s step, v reflect.Value, fallback string) {
	w.path = append(w.path, s)
	w.walk(v, fallback)
	w.path = w.path[:len(w.path)-1]
}

// walkMap visits the values of a map, in the order of the texts of the keys. They are not addressable, so it visits
// copies, which replace them.
func (w *referenceWalk) walkMap(v reflect.Value, fallback string) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(keyText(a), keyText(b)) })
	for _, key := range keys {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(v.MapIndex(key))
		w.down(step{key: key}, value, fallback)
		v.SetMapIndex(key, value)
	}
}

// text writes the path down.
func (w *referenceWalk) text() string {
	var text strings.Builder
	text.WriteString("spec")
	for _, s := range w.path {
		switch {
		case s.field != "":
			text.WriteString("." + s.field)
		case s.key.IsValid():
			text.WriteString("[" + keyText(s.key) + "]")
		default:
			text.WriteString("[" + strconv.Itoa(s.index) + "]")
		}
	}
	return text.String()
}

func keyText(key reflect.Value) string {
	if key.Kind() == reflect.String {
		return strconv.Quote(key.String())
	}
	return fmt.Sprint(key)
}

// fieldName returns the name of a field in JSON. It is empty for an embedded struct whose fields count as those of the
// struct around it.
func fieldName(field reflect.StructField) string {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case name != "" && name != "-":
		return name
	case field.Anonymous, strings.Contains(options, "inline"):
		return ""
	}
	return field.Name
}
