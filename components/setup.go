package components

import (
	"fmt"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// checkStatus returns an error if a resource of the type of sample has no status of a component.
func (r *ComponentReconciler[T]) checkStatus(sample T) error {
	if !r.statusByDefault || isNil(sample) {
		// Only the author knows what Status returns for a resource with content.
		return nil
	}
	if _, ok := any(sample).(statusGetter); ok {
		return nil
	}
	sample = sample.DeepCopyObject().(T)
	allocateStatus(sample)
	if defaultStatus(sample) == nil {
		return fmt.Errorf("ComponentReconciler %q finds no apis.ComponentStatus in the status of %s: "+
			"embed apis.ComponentStatus in the type of its field Status, or define Status", r.Name, typeOf(sample))
	}
	return nil
}

// allocateStatus makes a field Status that is a nil pointer point to an empty status.
func allocateStatus(resource client.Object) {
	value := reflect.ValueOf(resource)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return
	}
	status := value.Elem().FieldByName("Status")
	if status.IsValid() && status.Kind() == reflect.Pointer && status.IsNil() && status.CanSet() {
		status.Set(reflect.New(status.Type().Elem()))
	}
}

// permanentError is an error that no retry mends. The root returns it, so that it is logged, and controller-runtime
// does not retry it.
type permanentError struct{ error }

func permanent(err error) error { return &permanentError{err} }

// Unwrap makes it a terminal error of controller-runtime, without the words of one.
func (e *permanentError) Unwrap() []error { return []error{e.error, reconcile.TerminalError(nil)} }
