package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// WithFinalizer keeps a deleted resource until the nested node has cleaned up. Use it for state that Kubernetes does
// not delete with the resource: state outside the cluster, objects in other namespaces, or objects without an owner.
//
//   - Runs: the nested node. Before it, adds the finalizer unless the resource is terminating.
//   - Stops: if the finalizer cannot be added. The nested node then does not run.
//   - On error: returns the nested node's error and result. The finalizer stays.
//   - On deletion: runs the nested node, which cleans up. The finalizer is removed when the node returns no error (a
//     mere [ErrHaltSubReconcilers] counts as none) and ReadyToClearFinalizer returns true. A node that has to wait
//     returns an error, which may be quiet, or lets ReadyToClearFinalizer return false.
//   - On [Withdraw]: if the finalizer is on the resource, as on deletion. Otherwise there is nothing to finalize: it
//     runs the nested node, which deletes its children, and does not add the finalizer.
//
// If a WithFinalizer is inside another, the outer finalizer is added first and removed last.
type WithFinalizer[Type client.Object] struct {
	// Name identifies the node in paths and logs. Default: WithFinalizer.
	Name string

	// Finalizer is added to the resource. It is a qualified name, such as "example.com/directory". Each node needs its
	// own name, because two nodes with the same finalizer would remove it for each other. Required.
	Finalizer string

	// ReadyToClearFinalizer is called after the nested node cleaned up without an error. If it returns false, the
	// finalizer stays until a later request. Default: returns true.
	ReadyToClearFinalizer func(ctx context.Context, resource Type) bool

	// Reconciler is the nested node. Required.
	Reconciler SubReconciler[Type]

	initOnce sync.Once
}

var _ SubReconciler[client.Object] = (*WithFinalizer[client.Object])(nil)

func (r *WithFinalizer[Type]) init() {
	r.initOnce.Do(func() {
		r.Name = cmp.Or(r.Name, "WithFinalizer")
		if r.ReadyToClearFinalizer == nil {
			r.ReadyToClearFinalizer = func(context.Context, Type) bool { return true }
		}
	})
}

// SetupWithManager validates, and sets up the nested node.
func (r *WithFinalizer[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUpNode(ctx, mgr, bldr, r, r.Name, setUpOf(r.Reconciler))
}

// Validate checks that the required fields are set and, if recursive, the nested node.
func (r *WithFinalizer[Type]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	return validateField(ctx, "WithFinalizer", r.Name, "Reconciler", r.Reconciler)
}

func (r *WithFinalizer[Type]) check() error {
	if r.Finalizer == "" {
		return fmt.Errorf("WithFinalizer %q must define Finalizer", r.Name)
	}
	if gotype.IsNil(r.Reconciler) {
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

	finalizes := resource.GetDeletionTimestamp() != nil
	if SupervisionOf(ctx, resource) == Withdraw {
		finalizes = controllerutil.ContainsFinalizer(resource, r.Finalizer)
		ctx = context.WithValue(ctx, finalizingKey{}, finalizes)
	} else if !finalizes {
		if err := AddFinalizer(ctx, resource, r.Finalizer); err != nil {
			return Result{}, err
		}
	}
	result, err := ReconcileNested(ctx, r.Reconciler, resource)
	if !finalizes || err != nil && !isOnlyHalt(err) {
		return result, err
	}
	if !r.ReadyToClearFinalizer(ctx, resource) {
		NotDone(ctx)
		return result, err
	}
	if clearErr := ClearFinalizer(ctx, resource, r.Finalizer); clearErr != nil {
		return result, clearErr
	}
	return result, err
}

type finalizingKey struct{}

// isFinalizing reports, while a supervisor says Withdraw, whether the finalizer of the innermost WithFinalizer is on
// the resource, so that there is something to finalize.
func isFinalizing(ctx context.Context) bool {
	finalizes, _ := ctx.Value(finalizingKey{}).(bool)
	return finalizes
}

// Describe shows the nested node.
func (r *WithFinalizer[Type]) Describe() Description {
	r.init()
	return Description{
		Kind:       "WithFinalizer",
		Name:       r.Name,
		Detail:     r.Finalizer,
		Uses:       []Access{{Verbs: []string{"patch"}}},
		Finalizers: nonEmpty(r.Finalizer),
		Nodes:      []Description{Describe(r.Reconciler)},
	}
}
