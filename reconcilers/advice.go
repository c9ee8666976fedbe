package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// Advice runs functions before, around and after a node, without a change of the node. The functions may measure the
// node, run it again, run it only sometimes, or inspect what it returns.
//
//   - Runs: Before, Around, which runs the node, and After, in this order.
//   - Stops: at an error of Before; neither Around nor After runs then.
//   - On error: an error of Before is returned with the result of Before. An error of Around goes to After, which
//     returns the final error.
//   - On deletion: the same.
type Advice[Type client.Object] struct {
	// Name identifies the node in paths and logs. Default: Advice.
	Name string

	// Setup adds watches and indexes, before those of the nested node. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconciler is the nested node. Required.
	Reconciler SubReconciler[Type]

	// Before runs first. The context that it returns replaces the current one, unless it is nil. Its result is
	// aggregated with the result of Around. Default: does nothing.
	Before func(ctx context.Context, resource Type) (context.Context, Result, error)

	// Around gets the nested node and runs it once, several times or not at all. Default: runs it once.
	Around func(ctx context.Context, resource Type, reconciler SubReconciler[Type]) (Result, error)

	// After gets the aggregated result of Before and Around, and the error of Around. It returns the final result and
	// error of the node. Default: returns its arguments.
	After func(ctx context.Context, resource Type, result Result, err error) (Result, error)

	initOnce sync.Once
}

var _ SubReconciler[client.Object] = (*Advice[client.Object])(nil)

func (r *Advice[Type]) init() {
	r.initOnce.Do(func() {
		r.Name = cmp.Or(r.Name, "Advice")
		if r.Before == nil {
			r.Before = func(context.Context, Type) (context.Context, Result, error) { return nil, Result{}, nil }
		}
		if r.Around == nil {
			r.Around = func(ctx context.Context, resource Type, reconciler SubReconciler[Type]) (Result, error) {
				return ReconcileNested(ctx, reconciler, resource)
			}
		}
		if r.After == nil {
			r.After = func(_ context.Context, _ Type, result Result, err error) (Result, error) { return result, err }
		}
	})
}

// SetupWithManager validates, then sets up the node itself and the nested node.
func (r *Advice[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUpNode(ctx, mgr, bldr, r, r.Name, r.Setup, setUpOf(r.Reconciler))
}

// Validate checks that the required field is set and, if recursive, the nested node.
func (r *Advice[Type]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	return validateField(ctx, "Advice", r.Name, "Reconciler", r.Reconciler)
}

func (r *Advice[Type]) check() error {
	if gotype.IsNil(r.Reconciler) {
		return fmt.Errorf("Advice %q must implement Reconciler", r.Name)
	}
	return nil
}

// Reconcile runs the functions, see [Advice].
func (r *Advice[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	ctx = Enter(ctx, r.Name)

	replaced, before, err := r.Before(ctx, resource)
	if err != nil {
		recordUnlocated(ctx, err)
		return before, err
	}
	if replaced != nil {
		ctx = replaced
	}
	result, err := r.Around(ctx, resource, r.Reconciler)
	recordUnlocated(ctx, err)
	result, err = r.After(ctx, resource, aggregateResult(before, result), err)
	recordUnlocated(ctx, err)
	return result, err
}

// Describe shows the nested node.
func (r *Advice[Type]) Describe() Description {
	r.init()
	return Description{Kind: "Advice", Name: r.Name, Nodes: []Description{Describe(r.Reconciler)}}
}
