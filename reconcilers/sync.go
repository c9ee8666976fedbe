package reconcilers

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SyncReconciler runs a function of the author: the leaf for whatever no other leaf does.
//
//   - Runs: Sync while the resource lives, Finalize while it is terminating.
//   - Stops: never on its own.
//   - On error: logs it unless it is quiet, and returns it with the result so far. An error of Sync keeps Finalize from
//     running.
//   - On deletion: runs Finalize, if there is one; with SyncDuringFinalization it runs Sync first. A Finalize can only
//     be relied upon under a [WithFinalizer]: without a finalizer the resource may be gone before anybody looks.
type SyncReconciler[Type client.Object] struct {
	// Name identifies the node in paths and logs. Default: SyncReconciler.
	Name string

	// Setup adds watches and indexes. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// SyncDuringFinalization runs Sync for a terminating resource too, before Finalize. Default: false.
	SyncDuringFinalization bool

	// Sync does the work for a resource that lives. Exactly one of Sync and SyncWithResult is required.
	Sync func(ctx context.Context, resource Type) error

	// SyncWithResult is Sync for those who also ask for a delay.
	SyncWithResult func(ctx context.Context, resource Type) (Result, error)

	// Finalize cleans up for a resource that is terminating. Optional; at most one of Finalize and FinalizeWithResult.
	Finalize func(ctx context.Context, resource Type) error

	// FinalizeWithResult is Finalize for those who also ask for a delay.
	FinalizeWithResult func(ctx context.Context, resource Type) (Result, error)

	// Uses tells what the functions do with the API, for the RBAC rules derived from the tree. It changes nothing else.
	// Optional.
	Uses []Access

	initOnce sync.Once
}

var _ SubReconciler[client.Object] = (*SyncReconciler[client.Object])(nil)

func (r *SyncReconciler[Type]) init() {
	r.initOnce.Do(func() {
		if r.Name == "" {
			r.Name = "SyncReconciler"
		}
	})
}

// SetupWithManager validates, and calls Setup if there is one.
func (r *SyncReconciler[Type]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	ctx = Enter(ctx, r.Name)
	if err := r.Validate(ctx); err != nil {
		return err
	}
	if r.Setup == nil {
		return nil
	}
	return r.Setup(ctx, mgr, bldr)
}

// Validate checks that the functions are set as they must be.
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

	aggregate := Result{}
	terminating := resource.GetDeletionTimestamp() != nil
	if !terminating || r.SyncDuringFinalization {
		result, err := r.sync(ctx, resource)
		aggregate = aggregateResult(aggregate, result)
		if err != nil {
			r.failed(ctx, err, "unable to sync")
			return aggregate, err
		}
	}
	if terminating {
		result, err := r.finalize(ctx, resource)
		aggregate = aggregateResult(aggregate, result)
		if err != nil {
			r.failed(ctx, err, "unable to finalize")
			return aggregate, err
		}
	}
	return aggregate, nil
}

func (r *SyncReconciler[Type]) failed(ctx context.Context, err error, message string) {
	recordFailure(ctx, "", err)
	if !isQuiet(err) && !isDenial(ctx, err) {
		logr.FromContextOrDiscard(ctx).Error(err, message)
	}
}

func (r *SyncReconciler[Type]) sync(ctx context.Context, resource Type) (Result, error) {
	if r.Sync != nil {
		return Result{}, r.Sync(ctx, resource)
	}
	return r.SyncWithResult(ctx, resource)
}

func (r *SyncReconciler[Type]) finalize(ctx context.Context, resource Type) (Result, error) {
	switch {
	case r.Finalize != nil:
		return Result{}, r.Finalize(ctx, resource)
	case r.FinalizeWithResult != nil:
		return r.FinalizeWithResult(ctx, resource)
	default:
		return Result{}, nil
	}
}

// Describe tells what the author says that the functions use.
func (r *SyncReconciler[Type]) Describe() Description {
	r.init()
	return Description{Kind: "SyncReconciler", Name: r.Name, Uses: r.Uses}
}
