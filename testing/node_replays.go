package testing

import (
	"context"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
)

// expectsFailure reports whether a row of a node expects an error that a root returns. It turns a quiet one into a
// result, as that of a node that halts.
func expectsFailure(should bool, expected error) bool {
	if expected == nil {
		return should
	}
	return !isHandled(expected)
}

// emptyOf returns an object of the type and kind of a resource.
func emptyOf[Type client.Object](resource Type) Type {
	t := reflect.TypeOf(resource)
	if t.Kind() != reflect.Pointer {
		return resource
	}
	empty, ok := reflect.New(t.Elem()).Interface().(Type)
	if !ok {
		return resource
	}
	empty.GetObjectKind().SetGroupVersionKind(resource.GetObjectKind().GroupVersionKind())
	return empty
}

// stashing is a node that finds given values in the stash.
type stashing[Type client.Object] struct {
	reconcilers.SubReconciler[Type]
	values map[stash.Key]any
}

// Reconcile implements [reconcilers.SubReconciler].
func (s stashing[Type]) Reconcile(ctx context.Context, resource Type) (reconcilers.Result, error) {
	for key, value := range s.values {
		stash.StoreValue(ctx, key, copyOfValue(value))
	}
	return s.SubReconciler.Reconcile(ctx, resource)
}
