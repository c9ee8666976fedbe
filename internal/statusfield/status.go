// Package statusfield reads and writes the status of resources of any Go type: the field Status, and in it Conditions
// and ObservedGeneration, as Kubernetes types have them. An unstructured object has its member status. It also finds
// the structs in a status in which nodes keep what they know.
package statusfield

import (
	"context"
	"reflect"
	"sync"

	"github.com/espalier-dev/espalier/internal/digest"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fields are the fields of the status of a Go type.
type fields struct {
	// status is the index of the field, nil if there is none.
	status []int
	// statusType is the struct, or the type that has its place.
	statusType reflect.Type
	// pointer is true if the field is a pointer.
	pointer bool
	// conditions and generation are indexes within the status, nil if it has no such field of the right type.
	conditions []int
	generation []int
}

var knownFields sync.Map // of reflect.Type to fields

func fieldsOf(t reflect.Type) fields {
	if known, ok := knownFields.Load(t); ok {
		return known.(fields)
	}
	f := fields{}
	if t != nil && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		if field, ok := t.Elem().FieldByName("Status"); ok {
			f.status, f.statusType = field.Index, field.Type
		}
	}
	if f.status != nil && f.statusType.Kind() == reflect.Pointer {
		f.pointer, f.statusType = true, f.statusType.Elem()
	}
	if f.status != nil && f.statusType.Kind() == reflect.Struct {
		conditions := reflect.TypeFor[[]metav1.Condition]()
		if field, ok := f.statusType.FieldByName("Conditions"); ok && field.Type == conditions {
			f.conditions = field.Index
		}
		if field, ok := f.statusType.FieldByName("ObservedGeneration"); ok && field.Type.Kind() == reflect.Int64 {
			f.generation = field.Index
		}
	}
	knownFields.Store(t, f)
	return f
}

// Status is the status of one object: a field, a member of unstructured content, or nothing.
type Status struct {
	fields  fields
	value   reflect.Value
	content map[string]any
}

// Of returns the status of obj. What is written to it is written to obj.
func Of(obj client.Object) Status {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return Status{content: u.Object}
	}
	f := fieldsOf(reflect.TypeOf(obj))
	if f.status == nil {
		return Status{}
	}
	v, err := reflect.ValueOf(obj).Elem().FieldByIndexErr(f.status)
	if err == nil && f.pointer {
		v = v.Elem()
	}
	if err != nil || !v.IsValid() {
		return Status{}
	}
	return Status{fields: f, value: v}
}

// Exists reports whether there is a status that can be written. An unstructured object has one in any case.
func (s Status) Exists() bool {
	return s.value.IsValid() || s.content != nil
}

// Get returns the status for comparison: a pointer to the field, or what an unstructured object holds.
func (s Status) Get() any {
	switch {
	case s.value.IsValid():
		return s.value.Addr().Interface()
	case s.content != nil:
		return s.content["status"]
	default:
		return nil
	}
}

// Differs reports whether the status is another than before. Types with a registered equality function are compared by
// it.
func (s Status) Differs(before Status) bool {
	if !s.Exists() || !before.Exists() {
		return false
	}
	a, b := before.Get(), s.Get()
	// Most requests change nothing, and the digests find that out at a fraction of the cost.
	if was, ok := digest.Of(a); ok {
		if is, ok := digest.Of(b); ok && is == was {
			return false
		}
	}
	return !equality.Semantic.DeepEqual(a, b)
}

// CopyFrom gives the status the value of another status. Both must exist, in objects of one Go type.
func (s Status) CopyFrom(from Status) {
	s.value.Set(from.value)
}

// Clear empties the status.
func (s Status) Clear() {
	if s.value.IsValid() {
		s.value.SetZero()
	} else {
		delete(s.content, "status")
	}
}

// The methods by which a status sets up its conditions.
type (
	initializer           interface{ InitializeConditions(context.Context) }
	deprecatedInitializer interface{ InitializeConditions() }
)

// InitializeConditions lets the status set up its conditions, if it has a method for that.
func (s Status) InitializeConditions(ctx context.Context) {
	if !s.value.IsValid() {
		return
	}
	switch status := s.Get().(type) {
	case initializer:
		status.InitializeConditions(ctx)
	case deprecatedInitializer:
		status.InitializeConditions()
	}
}

// field returns a field of the status. It is not valid if there is none, or if it is behind a pointer that is nil.
func (s Status) field(index []int) reflect.Value {
	if index == nil {
		return reflect.Value{}
	}
	field, _ := s.value.FieldByIndexErr(index)
	return field
}

// ObservedGeneration returns the generation that the status is about, and false if it has no such field. That of an
// unstructured object is the one that it says, if any.
func (s Status) ObservedGeneration() (generation int64, has bool) {
	if s.content != nil {
		status, _ := s.content["status"].(map[string]any)
		generation, has = status["observedGeneration"].(int64)
		return generation, has
	}
	field := s.field(s.fields.generation)
	if !field.IsValid() {
		return 0, false
	}
	return field.Int(), true
}

// SetObservedGeneration sets the observed generation, if the status has the field.
func (s Status) SetObservedGeneration(generation int64) {
	if field := s.field(s.fields.generation); field.IsValid() {
		field.SetInt(generation)
	}
}

// CanHaveConditions reports whether objects of a Go type have conditions, at least if their status is set.
func CanHaveConditions(t reflect.Type) bool {
	return t == reflect.TypeFor[*unstructured.Unstructured]() || fieldsOf(t).conditions != nil
}

// HasConditions reports whether the status has conditions that can be set. An unstructured object has them in any case.
func (s Status) HasConditions() bool {
	return s.content != nil || s.field(s.fields.conditions).IsValid()
}

// GetConditions returns the conditions themselves, not a copy. Those of an unstructured object are a copy.
func (s Status) GetConditions() []metav1.Condition {
	if s.content != nil {
		return conditionsIn(s.content)
	}
	return s.conditions()
}

// SetConditions replaces the conditions, if the status has any.
func (s Status) SetConditions(conditions []metav1.Condition) {
	if s.content != nil {
		setConditionsIn(s.content, conditions)
		return
	}
	if field := s.field(s.fields.conditions); field.IsValid() {
		field.Set(reflect.ValueOf(conditions))
	}
}

func (s Status) conditions() []metav1.Condition {
	field := s.field(s.fields.conditions)
	if !field.IsValid() {
		return nil
	}
	return *field.Addr().Interface().(*[]metav1.Condition)
}

// KeepTransitionTimes restores the transition time of each condition that says the same as before. A condition that
// changed twice within a request, and is as before, is then no change.
func (s Status) KeepTransitionTimes(before Status) {
	conditions := s.conditions()
	for _, old := range before.conditions() {
		for i := range conditions {
			current := &conditions[i]
			if current.Type != old.Type {
				continue
			}
			was := old
			was.LastTransitionTime = current.LastTransitionTime
			if *current == was {
				current.LastTransitionTime = old.LastTransitionTime
			}
			break
		}
	}
}

// Describe returns remarks for the author of a Go type on what its status lacks that a root would use. A well-shaped
// type gives none. Summarised says that the tree keeps the conditions, so that nothing has to initialize them.
func Describe(t reflect.Type, summarised bool) []string {
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	f := fieldsOf(t)
	if f.status == nil {
		return []string{"resource missing status field, operations related to status will be skipped"}
	}
	var remarks []string
	add := func(remark string) { remarks = append(remarks, "resource status "+remark) }
	if f.pointer {
		add("is nilable, status is typically a struct")
	}
	if f.generation == nil {
		add("missing ObservedGeneration field of type int64, generation will not be managed")
	}
	pointer := reflect.PointerTo(f.statusType)
	switch {
	case pointer.Implements(reflect.TypeFor[initializer]()):
	case pointer.Implements(reflect.TypeFor[deprecatedInitializer]()):
		add("InitializeConditions() method is deprecated, use InitializeConditions(context.Context)")
	case summarised && f.conditions != nil:
	default:
		add("missing InitializeConditions(context.Context) method, conditions will not be auto-initialized")
	}
	if f.conditions == nil {
		add("is missing field Conditions of type []metav1.Condition, condition timestamps will not be managed")
	}
	return remarks
}

// PartOf returns the Part that the field Status of a resource is, points to, or embeds; nil if there is none.
func PartOf[Part any](resource client.Object) *Part {
	status, ok := StructOf(resource, "Status")
	if !ok {
		return nil
	}
	if found, ok := status.Addr().Interface().(*Part); ok {
		return found
	}
	embedded := fieldOf(status, reflect.TypeFor[Part]().Name())
	if !embedded.IsValid() || !embedded.CanInterface() {
		return nil
	}
	found, _ := embedded.Addr().Interface().(*Part)
	return found
}

// StructOf returns an exported field that is a struct, or a pointer to one that is not nil, of what resource points to.
func StructOf(resource client.Object, name string) (reflect.Value, bool) {
	value := reflect.ValueOf(resource)
	if value.Kind() != reflect.Pointer || value.IsNil() || value.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	field := fieldOf(value.Elem(), name)
	if field.IsValid() && field.Kind() == reflect.Pointer {
		// The element of a nil pointer is no valid value.
		field = field.Elem()
	}
	if !field.IsValid() || field.Kind() != reflect.Struct || !field.CanInterface() {
		return reflect.Value{}, false
	}
	return field, true
}

// fieldOf returns a field of a struct, also of one that is embedded. It returns no valid value if there is no such
// field, or if the struct that has it is embedded as a nil pointer.
func fieldOf(value reflect.Value, name string) reflect.Value {
	field, ok := value.Type().FieldByName(name)
	if !ok {
		return reflect.Value{}
	}
	found, err := value.FieldByIndexErr(field.Index)
	if err != nil {
		return reflect.Value{}
	}
	return found
}
