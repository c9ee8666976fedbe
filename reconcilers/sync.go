package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/gotype"
)

// SyncReconciler runs a function of the author. It is the leaf for work that no other leaf does.
//
//   - Runs: Sync while the resource lives, Finalize while it is terminating.
//   - Stops: never on its own.
//   - On error: returns the error, with the result so far. After an error of Sync,
//     Finalize does not run.
//   - On deletion: runs Finalize, if it is set; with SyncDuringFinalization it runs Sync first. Put the node under a
//     [WithFinalizer] if Finalize must run: without a finalizer the resource may be gone before the controller sees the
//     deletion.
//   - On [Withdraw]: Sync does not run. Finalize runs if the node is below a [WithFinalizer] whose finalizer is on the
//     resource, and that has the same [Supervisor].
type SyncReconciler[Type client.Object] struct {
	// Name identifies the node in paths and logs. Default: SyncReconciler.
	Name string

	// Setup adds watches and indexes. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// SyncDuringFinalization runs Sync for a terminating resource too, before Finalize. Default: false.
	SyncDuringFinalization bool

	// Sync does the work for a resource that is not terminating. Exactly one of Sync and SyncWithResult is required.
	Sync func(ctx context.Context, resource Type) error

	// SyncWithResult is Sync with a Result, to ask for a delay.
	SyncWithResult func(ctx context.Context, resource Type) (Result, error)

	// Finalize cleans up for a resource that is terminating. Optional; at most one of Finalize and FinalizeWithResult.
	Finalize func(ctx context.Context, resource Type) error

	// FinalizeWithResult is Finalize with a Result, to ask for a delay.
	FinalizeWithResult func(ctx context.Context, resource Type) (Result, error)

	// Uses lists what the functions do with the API. The RBAC rules that are derived from the tree depend on it. A type
	// with the verb watch is watched for what the functions track, see [WatchTracked]. Optional.
	Uses []Access

	initOnce sync.Once
}

var _ SubReconciler[client.Object] = (*SyncReconciler[client.Object])(nil)

func (r *SyncReconciler[Type]) init() {
	r.initOnce.Do(func() { r.Name = cmp.Or(r.Name, "SyncReconciler") })
}

// SetupWithManager validates, watches the types that Uses says are watched, and calls Setup if it is set.
func (r *SyncReconciler[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUpNode(ctx, mgr, bldr, r, r.Name, r.watchUsed, r.Setup)
}

// watchUsed watches the types of Uses for what is tracked. Without a tracker nothing can be tracked.
func (r *SyncReconciler[Type]) watchUsed(ctx context.Context, _ Manager, bldr *Builder) error {
	for _, access := range r.Uses {
		if gotype.IsNil(access.Object) || access.Subresource != "" || !slices.Contains(access.Verbs, "watch") {
			continue
		}
		if config, err := RetrieveConfig(ctx); err == nil && config.Tracker == nil {
			return nil
		}
		if err := watchTracked(ctx, bldr, access.Object, access.Optional); err != nil {
			return fmt.Errorf("SyncReconciler %q is unable to watch %s of its Uses: %w",
				r.Name, typeName(access.Object), err)
		}
	}
	return nil
}

// Validate checks that the required functions are set, and that none is set twice.
func (r *SyncReconciler[Type]) Validate(ctx context.Context) error {
	r.init()
	return r.check()
}

func (r *SyncReconciler[Type]) check() error {
	if r.Sync == nil && r.SyncWithResult == nil {
		return fmt.Errorf("SyncReconciler %q must implement Sync or SyncWithResult", r.Name)
	}
	if r.Sync != nil && r.SyncWithResult != nil {
		return fmt.Errorf("SyncReconciler %q may not implement both Sync and SyncWithResult", r.Name)
	}
	if r.Finalize != nil && r.FinalizeWithResult != nil {
		return fmt.Errorf("SyncReconciler %q may not implement both Finalize and FinalizeWithResult", r.Name)
	}
	return nil
}

// Reconcile runs the functions, see [SyncReconciler].
func (r *SyncReconciler[Type]) Reconcile(ctx context.Context, resource Type) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	ctx = Enter(ctx, r.Name)

	terminating := resource.GetDeletionTimestamp() != nil
	if SupervisionOf(ctx, resource) == Withdraw {
		if !isFinalizing(ctx) {
			return Result{}, nil
		}
		return r.call(ctx, resource, r.Finalize, r.FinalizeWithResult)
	}
	var synced Result
	if !terminating || r.SyncDuringFinalization {
		var err error
		if synced, err = r.call(ctx, resource, r.Sync, r.SyncWithResult); err != nil {
			return synced, err
		}
	}
	if !terminating {
		return synced, nil
	}
	finalized, err := r.call(ctx, resource, r.Finalize, r.FinalizeWithResult)
	return aggregateResult(synced, finalized), err
}

// call runs the function that is set, if any.
func (r *SyncReconciler[Type]) call(
	ctx context.Context, resource Type,
	function func(context.Context, Type) error, withResult func(context.Context, Type) (Result, error),
) (result Result, err error) {
	switch {
	case function != nil:
		err = function(ctx, resource)
	case withResult != nil:
		result, err = withResult(ctx, resource)
	}
	recordFailure(ctx, "", err)
	return aggregateResult(Result{}, result), err
}

// Describe lists the Uses that the author gave.
func (r *SyncReconciler[Type]) Describe() Description {
	r.init()
	return Description{Kind: "SyncReconciler", Name: r.Name, Uses: r.Uses}
}
