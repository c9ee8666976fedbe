package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// OverrideSetup replaces the set-up of a node. It does not change what the node does in a request.
//
//   - Runs: the nested node, if it is set.
//   - Stops: never on its own.
//   - On error: returns the nested node's error and result, unchanged.
//   - On deletion: the same.
//
// The watches and indexes of the nested node are not added. Events of its children then do not wake the resource, and
// it finds children by listing their namespace instead of using an index.
type OverrideSetup[Type client.Object] struct {
	// Name identifies the node in paths and logs. Default: SkipSetup.
	Name string

	// Setup adds watches and indexes, in place of the nested node's set-up. Required if Reconciler is not set. Default:
	// adds none.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconciler is the nested node. Its set-up is never run. Required if Setup is not set. Default: does nothing.
	Reconciler SubReconciler[Type]

	initOnce sync.Once
}

var _ SubReconciler[client.Object] = (*OverrideSetup[client.Object])(nil)

func (r *OverrideSetup[Type]) init() {
	r.initOnce.Do(func() { r.Name = cmp.Or(r.Name, "SkipSetup") })
}

// SetupWithManager validates, and calls Setup if it is set.
func (r *OverrideSetup[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUpNode(ctx, mgr, bldr, r, r.Name, r.Setup)
}

// Validate checks that one of the fields is set and, if recursive, the nested node.
func (r *OverrideSetup[Type]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	if gotype.IsNil(r.Reconciler) {
		return nil
	}
	return validateField(ctx, "OverrideSetup", r.Name, "Reconciler", r.Reconciler)
}

func (r *OverrideSetup[Type]) check() error {
	if r.Setup == nil && gotype.IsNil(r.Reconciler) {
		return fmt.Errorf("OverrideSetup %q must implement at least one of Setup or Reconciler", r.Name)
	}
	return nil
}

// Reconcile runs the nested node, see [OverrideSetup].
func (r *OverrideSetup[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	if gotype.IsNil(r.Reconciler) {
		return Result{}, nil
	}
	ctx = Enter(ctx, r.Name)
	return ReconcileNested(ctx, r.Reconciler, resource)
}

// Describe shows the nested node, if it is set.
func (r *OverrideSetup[Type]) Describe() Description {
	r.init()
	d := Description{Kind: "OverrideSetup", Name: r.Name}
	if !gotype.IsNil(r.Reconciler) {
		d.Nodes = []Description{Describe(r.Reconciler)}
	}
	return d
}
