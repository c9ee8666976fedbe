package reconcilers

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SubReconciler is a node of a reconciler tree: it does one part of the work for a resource of type Type. Leaves
// ([SyncReconciler], [ChildReconciler]) act on the cluster or on the outside world; combinators ([Sequence], [IfThen],
// [WithFinalizer]) run other nodes.
//
// Whoever implements one has these duties:
//
//   - Reconcile converges: it may run at any time, any number of times, after a crash at any point, and works towards the
//     same end state each time.
//   - It changes resource in memory only; the root persists the status, once, after the whole tree has run. Everything
//     else about the resource is thrown away.
//   - It reads and writes through [RetrieveConfigOrDie], so that [Config] can be replaced around it, and takes the time
//     from package time, so that it can be tested.
//   - When the resource is terminating (its deletion timestamp is set), it cleans up what it made, and makes nothing.
//   - An error says what could not be done; [ErrQuiet], [ErrHaltSubReconcilers] and [ErrSkipStatusUpdate] have meanings of
//     their own.
//
// A node may also be a [Describer], to appear in the printed tree and in the RBAC rules derived from it, and a
// [github.com/espalier-dev/espalier/validation.Validator], to have its configuration checked.
type SubReconciler[Type client.Object] interface {
	// SetupWithManager is called once, before the manager starts, parents before children. It adds watches and indexes. The
	// context is the one of the root's set-up: it has the config and the type of the resource.
	SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error

	// Reconcile does the work for one resource. A result without an error is aggregated with those of the other nodes.
	Reconcile(ctx context.Context, resource Type) (Result, error)
}
