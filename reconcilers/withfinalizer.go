package reconcilers

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WithFinalizer keeps the resource from going before the nested node has cleaned up. It is for state that nothing else
// takes away: state outside the cluster, in other namespaces, or without an owner.
//
//   - Runs: the nested node, while the resource lives only once the finalizer is on it.
//   - Stops: if the finalizer cannot be put on; the nested node then does not run.
//   - On error: returns the nested node's error and result; the finalizer stays.
//   - On deletion: runs the nested node, which cleans up. When it returns no error (or does no more than halt, which is
//     no failure) and ReadyToClearFinalizer agrees, the finalizer is taken off. A node that has to wait returns an
//     error, quiet if it likes, or makes ReadyToClearFinalizer say so.
//
// Nested, the outer finalizer is put on first and taken off last.
type WithFinalizer[Type client.Object] struct {
	// Name identifies the node in paths and logs. Default: WithFinalizer.
	Name string

	// Finalizer is put on the resource: a qualified name, such as "example.com/directory". Required, and to be unique
	// to the node: two nodes of one finalizer would clear it for each other.
	Finalizer string

	// ReadyToClearFinalizer is asked after the nested node cleaned up without an error. Returning false keeps the
	// finalizer until a later request. Default: always ready.
	ReadyToClearFinalizer func(ctx context.Context, resource Type) bool

	// Reconciler is the nested node. Required.
	Reconciler SubReconciler[Type]

	initOnce sync.Once
}

var _ SubReconciler[client.Object] = (*WithFinalizer[client.Object])(nil)

func (r *WithFinalizer[Type]) init() {
	r.initOnce.Do(func() {
		if r.Name == "" {
			r.Name = "WithFinalizer"
		}
		if r.ReadyToClearFinalizer == nil {
			r.ReadyToClearFinalizer = func(context.Context, Type) bool { return true }
		}
	})
}

// SetupWithManager validates, and sets up the nested node.
func (r *WithFinalizer[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	ctx = Enter(ctx, r.Name)
	if err := r.Validate(ctx); err != nil {
		return err
	}
	return r.Reconciler.SetupWithManager(ctx, mgr, bldr)
}

// Validate checks that the required fields are set and, if recursive, the nested node.
func (r *WithFinalizer[Type]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	if err := validateNested(ctx, r.Reconciler); err != nil {
		return fmt.Errorf("WithFinalizer %q must have a valid Reconciler: %w", r.Name, err)
	}
	return nil
}

func (r *WithFinalizer[Type]) check() error {
	if r.Finalizer == "" {
		return fmt.Errorf("WithFinalizer %q must define Finalizer", r.Name)
	}
	if isNilNode(r.Reconciler) {
		return fmt.Errorf("WithFinalizer %q must define Reconciler", r.Name)
	}
	return nil
}

// Reconcile runs the nested node, see [WithFinalizer].
func (r *WithFinalizer[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	ctx = Enter(ctx, r.Name)

	if resource.GetDeletionTimestamp() == nil {
		if err := AddFinalizer(ctx, resource, r.Finalizer); err != nil {
			return Result{}, err
		}
		result, err := r.Reconciler.Reconcile(ctx, resource)
		recordUnlocated(ctx, err)
		return result, err
	}

	result, err := r.Reconciler.Reconcile(ctx, resource)
	recordUnlocated(ctx, err)
	if err != nil && !isOnlyHalt(err) {
		return result, err
	}
	if !r.ReadyToClearFinalizer(ctx, resource) {
		return result, err
	}
	if clearErr := ClearFinalizer(ctx, resource, r.Finalizer); clearErr != nil {
		return result, clearErr
	}
	return result, err
}

// Describe shows the nested node.
func (r *WithFinalizer[Type]) Describe() Description {
	r.init()
	return Description{
		Kind:   "WithFinalizer",
		Name:   r.Name,
		Detail: r.Finalizer,
		Uses:   []Access{{Verbs: []string{"patch"}}},
		Nodes:  []Description{Describe(r.Reconciler)},
	}
}
