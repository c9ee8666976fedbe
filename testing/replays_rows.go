package testing

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
)

var (
	errNoNode = errors.New("the factory returned no sub-reconciler")
	errNoRoot = errors.New("the factory returned no reconciler")
)

// replays returns the replays of the row, which Prepare left as prepared. The node is the tree of a root, so that
// errors, the status and requeues are handled as in production.
func (tc *SubReconcilerTestCase[Type]) replays(
	prepared *SubReconcilerTestCase[Type], scheme *runtime.Scheme, factory SubReconcilerFactory[Type],
) *replayed {
	r := replaysOf(tc, prepared, scheme, stash.WithContext, prepared.give, func(
		t *testing.T, tc *SubReconcilerTestCase[Type], c reconcilers.Config,
	) (reconcile.Reconciler, error) {
		node := factory(t, tc, c)
		if gotype.IsNil(node) {
			return nil, errNoNode
		}
		return &reconcilers.ResourceReconciler[Type]{
			Type: emptyOf(tc.Resource), Config: c,
			Reconciler: stashing[Type]{node, tc.GivenStashedValues},
			// The write of the observed generation alone leads to no other request.
			KeepResultAfterStatusUpdate: true,
		}, nil
	})
	r.ofNode = true
	r.request.NamespacedName = client.ObjectKeyFromObject(prepared.Resource)
	switch {
	case expectsFailure(prepared.ShouldErr, prepared.ExpectedErr):
		r.not = cmp.Or(r.not, "it expects an error")
	case prepared.ShouldPanic:
		r.not = cmp.Or(r.not, "it expects a panic")
	case prepared.continues:
		r.not = cmp.Or(r.not, "it goes on with the instance of another row")
	}
	return r
}

// replays is the same for a root.
func (tc *ReconcilerTestCase) replays(
	prepared *ReconcilerTestCase, scheme *runtime.Scheme, factory ReconcilerFactory,
) *replayed {
	same := func(ctx context.Context) context.Context { return ctx }
	r := replaysOf(tc, prepared, scheme, same, prepared.give, func(
		t *testing.T, tc *ReconcilerTestCase, c reconcilers.Config,
	) (reconcile.Reconciler, error) {
		root := factory(t, tc, c)
		if gotype.IsNil(root) {
			return nil, errNoRoot
		}
		return root, nil
	})
	r.request = prepared.Request
	if prepared.ShouldErr || prepared.ExpectedErr != nil {
		r.not = cmp.Or(r.not, "it expects an error")
	}
	return r
}

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
