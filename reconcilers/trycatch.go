package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// TryCatch runs a node, lets a function replace its result and error, and then runs another node in any case.
//
//   - Runs: Try, then Catch and Finally if they are set.
//   - Stops: never on its own.
//   - On error: an error of Try goes to Catch, which may drop it, return it, or return another one. Without Catch the
//     error is returned after Finally has run. An error of Finally is joined with the error before it. If only one of
//     the two is quiet, the quiet one is dropped, but its [ErrSkipStatusUpdate] is kept.
//   - On deletion: the same.
//
// The result of Catch (without Catch, the result of Try) is aggregated with the result of Finally. Below a root, a
// panic of Try is an error. Elsewhere panics are not caught: after a panic neither Catch nor Finally runs.
type TryCatch[Type client.Object] struct {
	// Name identifies the node in paths and logs. Default: TryCatch.
	Name string

	// Setup adds watches and indexes, before those of the nodes. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Try runs first. Required.
	Try SubReconciler[Type]

	// Catch is called with the result and error of Try, also if the error is nil. It returns the result and error that
	// replace them. Default: keeps those of Try.
	Catch func(ctx context.Context, resource Type, result Result, err error) (Result, error)

	// Finally runs last, also after an error. Optional.
	Finally SubReconciler[Type]

	initOnce sync.Once
}

var _ SubReconciler[client.Object] = (*TryCatch[client.Object])(nil)

func (r *TryCatch[Type]) init() {
	r.initOnce.Do(func() { r.Name = cmp.Or(r.Name, "TryCatch") })
}

// SetupWithManager validates, then sets up the node itself, Try and Finally.
func (r *TryCatch[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUpNode(ctx, mgr, bldr, r, r.Name, r.Setup, setUpOf(r.Try), setUpOf(r.Finally))
}

// Validate checks that the required field is set and, if recursive, the nodes.
func (r *TryCatch[Type]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	if err := validateField(ctx, "TryCatch", r.Name, "Try", r.Try); err != nil {
		return err
	}
	if gotype.IsNil(r.Finally) {
		return nil
	}
	return validateField(ctx, "TryCatch", r.Name, "Finally", r.Finally)
}

func (r *TryCatch[Type]) check() error {
	if gotype.IsNil(r.Try) {
		return fmt.Errorf("TryCatch %q must implement Try", r.Name)
	}
	return nil
}

// Reconcile runs the nodes, see [TryCatch].
func (r *TryCatch[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	ctx = Enter(ctx, r.Name)

	result, err := ReconcileNested(ctx, r.Try, resource)
	if r.Catch != nil {
		result, err = r.Catch(ctx, resource, result, err)
		recordUnlocated(ctx, err)
	}
	if gotype.IsNil(r.Finally) {
		return result, err
	}
	finally, finallyErr := ReconcileNested(ctx, r.Finally, resource)
	return aggregateResult(result, finally), joinAll(err, finallyErr)
}

// Describe shows both nodes.
func (r *TryCatch[Type]) Describe() Description {
	r.init()
	d := Description{Kind: "TryCatch", Name: r.Name, Nodes: []Description{describeAs("Try", r.Try)}}
	if !gotype.IsNil(r.Finally) {
		d.Nodes = append(d.Nodes, describeAs("Finally", r.Finally))
	}
	return d
}
