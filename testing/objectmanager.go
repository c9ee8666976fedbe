package testing

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/stash"
	"github.com/espalier-dev/espalier/testing/internal/objects"
	"github.com/espalier-dev/espalier/validation"
)

// StubObjectManager is an object manager for tests of what uses one. It creates, updates and deletes with the config of
// the request, records no events, tracks nothing and sets no finalizers. An update takes over all of desired but its
// identity and its status, and of its metadata the labels and annotations.
type StubObjectManager[Type client.Object] struct{}

var _ reconcilers.ObjectManager[client.Object] = StubObjectManager[client.Object]{}

// SetupWithManager does nothing.
func (StubObjectManager[Type]) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

// Manage implements [reconcilers.ObjectManager].
func (StubObjectManager[Type]) Manage(ctx context.Context, _ client.Object, actual, desired Type) (Type, error) {
	var none Type
	c, err := reconcilers.RetrieveConfig(ctx)
	if err != nil {
		return none, err
	}
	absent := gotype.IsNil(actual) || actual.GetCreationTimestamp().Time.IsZero()
	switch {
	case gotype.IsNil(desired) && absent:
		return none, nil
	case gotype.IsNil(desired):
		if !actual.GetDeletionTimestamp().IsZero() {
			return none, nil
		}
		return none, c.Delete(ctx, actual)
	case absent:
		created := objects.Copy(desired)
		if err := c.Create(ctx, created); err != nil {
			return none, err
		}
		return created, nil
	}
	current := objects.Copy(actual)
	if err := merge(current, desired); err != nil {
		return none, err
	}
	if equality.Semantic.DeepEqual(current, actual) {
		return current, nil
	}
	if err := c.Update(ctx, current); err != nil {
		return none, err
	}
	return current, nil
}

// merge copies the fields of desired to current.
func merge(current, desired client.Object) error {
	to, err := runtime.DefaultUnstructuredConverter.ToUnstructured(current)
	if err != nil {
		return fmt.Errorf("cannot merge into %T %q: %w", current, current.GetName(), err)
	}
	from, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return fmt.Errorf("cannot merge from %T %q: %w", desired, desired.GetName(), err)
	}
	for member, value := range from {
		switch member {
		case "apiVersion", "kind", "metadata", "status":
		default:
			to[member] = value
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(to, current); err != nil {
		return fmt.Errorf("cannot merge into %T %q: %w", current, current.GetName(), err)
	}
	current.SetLabels(desired.GetLabels())
	current.SetAnnotations(desired.GetAnnotations())
	return nil
}

// ObjectManagerReconcilerTestHarness is a sub-reconciler that calls an object manager, to test it with
// [SubReconcilerTests]: events are recorded on the resource of the case, the objects come from the
// GivenStashedValues of the case, and its ExpectStashedValues have the result. Both objects must be stashed; nil stands
// for one that is not there. The actual object is given to the client.
type ObjectManagerReconcilerTestHarness[T client.Object] struct {
	// ObjectManager is the object manager to test. Required.
	ObjectManager reconcilers.ObjectManager[T]
}

var (
	_ reconcilers.SubReconciler[client.Object] = ObjectManagerReconcilerTestHarness[client.Object]{}
	_ validation.Validator                     = ObjectManagerReconcilerTestHarness[client.Object]{}
)

var errNoObjectManager = errors.New("ObjectManagerReconcilerTestHarness must implement ObjectManager")

// ObjectManagerReconcilerTestHarnessActualStasher stashes the object as it is.
func ObjectManagerReconcilerTestHarnessActualStasher[T client.Object]() stash.Stasher[T] {
	return stash.New[T]("reconciler.io/object-manager-reconciler-test-harness-actual")
}

// ObjectManagerReconcilerTestHarnessDesiredStasher stashes the object as it should be.
func ObjectManagerReconcilerTestHarnessDesiredStasher[T client.Object]() stash.Stasher[T] {
	return stash.New[T]("reconciler.io/object-manager-reconciler-test-harness-desired")
}

// ObjectManagerReconcilerTestHarnessResultStasher stashes the object that the manager returned, also beside an error.
func ObjectManagerReconcilerTestHarnessResultStasher[T client.Object]() stash.Stasher[T] {
	return stash.New[T]("reconciler.io/object-manager-reconciler-test-harness-result")
}

// Validate validates the object manager, if it can be.
func (r ObjectManagerReconcilerTestHarness[T]) Validate(ctx context.Context) error {
	if gotype.IsNil(r.ObjectManager) {
		return errNoObjectManager
	}
	if v, ok := r.ObjectManager.(validation.Validator); ok {
		return v.Validate(ctx)
	}
	return nil
}

// SetupWithManager sets up the object manager.
func (r ObjectManagerReconcilerTestHarness[T]) SetupWithManager(
	ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder,
) error {
	if err := r.Validate(ctx); err != nil {
		return err
	}
	return r.ObjectManager.SetupWithManager(ctx, mgr, bldr)
}

// Reconcile calls the object manager. It panics if one of the objects is not stashed.
func (r ObjectManagerReconcilerTestHarness[T]) Reconcile(
	ctx context.Context, resource client.Object,
) (reconcilers.Result, error) {
	if err := r.Validate(ctx); err != nil {
		return reconcilers.Result{}, err
	}
	actual := ObjectManagerReconcilerTestHarnessActualStasher[T]().RetrieveOrDie(ctx)
	desired := ObjectManagerReconcilerTestHarnessDesiredStasher[T]().RetrieveOrDie(ctx)
	if !gotype.IsNil(actual) {
		c, err := reconcilers.RetrieveConfig(ctx)
		if err != nil {
			return reconcilers.Result{}, err
		}
		given, ok := c.Client.(TestClient)
		if !ok {
			return reconcilers.Result{}, fmt.Errorf("the actual object cannot be given to a %T", c.Client)
		}
		given.AddGiven(actual)
	}
	result, err := r.ObjectManager.Manage(ctx, resource, actual, desired)
	ObjectManagerReconcilerTestHarnessResultStasher[T]().Store(ctx, result)
	return reconcilers.Result{}, err
}
