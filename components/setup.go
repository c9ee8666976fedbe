package components

import (
	"context"
	"fmt"
	"reflect"

	"github.com/espalier-dev/espalier/reconcilers"

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

// prefixClaim and statusClaim are what a component has alone of all components of a resource.
type (
	prefixClaim string
	// statusClaim is the place of a status in resources of a type.
	statusClaim struct {
		resource reflect.Type
		offset   uintptr
	}
)

// claim returns an error if another component of the tree has the prefix or the status of this one.
func (r *ComponentReconciler[T]) claim(ctx context.Context, sample T) error {
	if claimant, taken := reconcilers.Claim(ctx, prefixClaim(r.Prefix)); taken {
		return fmt.Errorf("ComponentReconciler %q must define another Prefix than %q, which %s has",
			r.Name, r.Prefix, claimant)
	}
	status, known := r.statusOf(sample)
	if !known {
		return nil
	}
	if claimant, taken := reconcilers.Claim(ctx, status); taken {
		return fmt.Errorf("ComponentReconciler %q must define another Status than that of %s", r.Name, claimant)
	}
	return nil
}

// statusOf finds out where in a resource the status is. known is false if it is not within the memory of the resource,
// or if Status cannot handle a resource without content.
func (r *ComponentReconciler[T]) statusOf(sample T) (claim statusClaim, known bool) {
	if isNil(sample) || reflect.TypeOf(sample).Kind() != reflect.Pointer {
		return statusClaim{}, false
	}
	defer func() {
		if recover() != nil {
			known = false
		}
	}()
	copied := sample.DeepCopyObject().(T)
	resource, status := reflect.ValueOf(copied), reflect.ValueOf(r.Status(copied))
	// What is before the resource has an offset that is larger than its size.
	offset := status.Pointer() - resource.Pointer()
	claim = statusClaim{resource.Type(), offset}
	return claim, !status.IsNil() && offset < resource.Type().Elem().Size()
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
