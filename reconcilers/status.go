package reconcilers

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

// statusShape is what is known of the status of a Go type, found out once.
type statusShape struct {
	// status is the index of the field, nil if there is none.
	status []int
	// pointer is true if the field is a pointer.
	pointer bool
	// conditions and generation are indexes within the status, nil if it has no such field of the right type.
	conditions []int
	generation []int
}

var statusShapes sync.Map // of reflect.Type to *statusShape

func shapeOf(obj client.Object) *statusShape {
	t := reflect.TypeOf(obj)
	if known, ok := statusShapes.Load(t); ok {
		return known.(*statusShape)
	}
	shape, _ := statusShapes.LoadOrStore(t, inspectStatus(t))
	return shape.(*statusShape)
}

var conditionsType = reflect.TypeFor[[]metav1.Condition]()

func inspectStatus(t reflect.Type) *statusShape {
	shape := &statusShape{}
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return shape
	}
	field, ok := t.Elem().FieldByName("Status")
	if !ok {
		return shape
	}
	status := field.Type
	if status.Kind() == reflect.Pointer {
		shape.pointer = true
		status = status.Elem()
	}
	shape.status = field.Index
	if status.Kind() != reflect.Struct {
		return shape
	}
	if f, ok := status.FieldByName("Conditions"); ok && f.Type == conditionsType {
		shape.conditions = f.Index
	}
	if f, ok := status.FieldByName("ObservedGeneration"); ok && f.Type.Kind() == reflect.Int64 {
		shape.generation = f.Index
	}
	return shape
}

// statusOf gives access to the status of obj.
func statusOf(obj client.Object) status {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return status{content: u.Object}
	}
	shape := shapeOf(obj)
	if shape.status == nil {
		return status{}
	}
	v, err := reflect.ValueOf(obj).Elem().FieldByIndexErr(shape.status)
	if err != nil {
		return status{}
	}
	if shape.pointer {
		if v.IsNil() {
			return status{}
		}
		v = v.Elem()
	}
	return status{shape: shape, value: v}
}

// status is the status of one object: a field, a member of unstructured content, or nothing.
type status struct {
	shape   *statusShape
	value   reflect.Value
	content map[string]any
}

// exists tells whether there is a status that can be written. An unstructured object has one in any case.
func (s status) exists() bool {
	return s.shape != nil || s.content != nil
}

// get returns the status for comparison: a pointer to the field, or whatever an unstructured object holds there.
func (s status) get() any {
	switch {
	case s.shape != nil:
		return s.value.Addr().Interface()
	case s.content != nil:
		return s.content["status"]
	default:
		return nil
	}
}

// differs tells whether the status is another than before. Types with a registered equality function are compared by it.
func (s status) differs(before status) bool {
	if !s.exists() || !before.exists() {
		return false
	}
	a, b := before.get(), s.get()
	// Most requests change nothing, and the digests find that out at a fraction of the cost.
	if was, ok := digest.Of(a); ok {
		if is, ok := digest.Of(b); ok && is == was {
			return false
		}
	}
	return !equality.Semantic.DeepEqual(a, b)
}

// take makes the status that of another object of the same Go type. Both must have one.
func (s status) take(from status) {
	s.value.Set(from.value)
}

// clear empties the status.
func (s status) clear() {
	if s.shape != nil {
		s.value.SetZero()
	} else {
		delete(s.content, "status")
	}
}

// initializeConditions lets the status set up its conditions, if it knows how to.
func (s status) initializeConditions(ctx context.Context) {
	if s.shape == nil {
		return
	}
	switch initializer := s.get().(type) {
	case interface{ InitializeConditions(context.Context) }:
		initializer.InitializeConditions(ctx)
	case interface{ InitializeConditions() }:
		initializer.InitializeConditions()
	}
}

func (s status) setObservedGeneration(generation int64) {
	if s.shape == nil || s.shape.generation == nil {
		return
	}
	if field, err := s.value.FieldByIndexErr(s.shape.generation); err == nil {
		field.SetInt(generation)
	}
}

func (s status) conditions() []metav1.Condition {
	if s.shape == nil || s.shape.conditions == nil {
		return nil
	}
	field, err := s.value.FieldByIndexErr(s.shape.conditions)
	if err != nil {
		// The status embeds a pointer that is nil.
		return nil
	}
	return *field.Addr().Interface().(*[]metav1.Condition)
}

// keepTransitionTimes restores the transition time of each condition that says the same as before, so that one which went
// back and forth within a request is no change.
func (s status) keepTransitionTimes(before status) {
	conditions := s.conditions()
	for _, old := range before.conditions() {
		for i := range conditions {
			current := &conditions[i]
			if current.Type != old.Type {
				continue
			}
			if current.Status == old.Status && current.Reason == old.Reason && current.Message == old.Message &&
				current.ObservedGeneration == old.ObservedGeneration {
				current.LastTransitionTime = old.LastTransitionTime
			}
			break
		}
	}
}

// describeStatus returns what an author may want to know about the status of a Go type: what is missing that a root would
// make use of. A well-shaped type gives nothing.
func describeStatus(t reflect.Type) []string {
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	field, ok := t.Elem().FieldByName("Status")
	if !ok {
		return []string{"resource missing status field, operations related to status will be skipped"}
	}
	var remarks []string
	statusType := field.Type
	if statusType.Kind() == reflect.Pointer {
		remarks = append(remarks, "resource status is nilable, status is typically a struct")
		statusType = statusType.Elem()
	}
	shape := inspectStatus(t)
	if shape.generation == nil {
		remarks = append(remarks, "resource status missing ObservedGeneration field of type int64, generation will not be managed")
	}
	pointer := reflect.PointerTo(statusType)
	switch {
	case pointer.Implements(reflect.TypeFor[interface{ InitializeConditions(context.Context) }]()):
	case pointer.Implements(reflect.TypeFor[interface{ InitializeConditions() }]()):
		remarks = append(remarks, "resource status InitializeConditions() method is deprecated, use InitializeConditions(context.Context)")
	default:
		remarks = append(remarks, "resource status missing InitializeConditions(context.Context) method, conditions will not be auto-initialized")
	}
	if shape.conditions == nil {
		remarks = append(remarks, "resource status is missing field Conditions of type []metav1.Condition, condition timestamps will not be managed")
	}
	return remarks
}
