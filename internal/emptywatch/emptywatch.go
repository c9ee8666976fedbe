// Package emptywatch has the predicate of a watch that passes no event on. A builder requires a watch of the type that
// a controller is for, also if the controller watches it by a handler of its own.
package emptywatch

import (
	"reflect"

	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Predicate passes no event.
type Predicate struct{}

// Create returns false.
func (Predicate) Create(event.CreateEvent) bool { return false }

// Update returns false.
func (Predicate) Update(event.UpdateEvent) bool { return false }

// Delete returns false.
func (Predicate) Delete(event.DeleteEvent) bool { return false }

// Generic returns false.
func (Predicate) Generic(event.GenericEvent) bool { return false }

// Is reports whether a handler of an informer has the predicate. controller-runtime keeps predicates in a field that it
// does not export.
func Is(handler cache.ResourceEventHandler) bool {
	value := reflect.Indirect(reflect.ValueOf(handler))
	if value.Kind() != reflect.Struct {
		return false
	}
	predicates := value.FieldByName("predicates")
	if predicates.Kind() != reflect.Slice {
		return false
	}
	for i := range predicates.Len() {
		predicate := predicates.Index(i)
		if predicate.Kind() == reflect.Interface && predicate.Elem().IsValid() &&
			predicate.Elem().Type() == reflect.TypeFor[Predicate]() {
			return true
		}
	}
	return false
}
