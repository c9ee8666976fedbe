package generator

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Hook does work for a component besides deploying its objects. [Hooks] says when.
//
// c is the client of the operator. It reads from the cache, and acts as the operator, not as the component. ctx
// contains the name of the reconciler and, except in post-read hooks, the local client and the client, see [Context].
// component is the resource. A hook may change its status, which is written with everything else. It must not change
// its spec or metadata.
//
// An error ends the request, and no later hook runs. After a [RetriableError] the component is Pending or
// DeletionPending, and after another error in state Error. A hook runs again after an error, after a crash, and after
// an error of a later step. Therefore it must be idempotent.
type Hook[T client.Object] func(ctx context.Context, c client.Client, component T) error

// Hooks are the hooks of a component. The hooks of one slice run in order. The zero value has none.
type Hooks[T client.Object] struct {
	// PostRead hooks run first, also while the component is deleted, but not while it is suspended. Nothing has been
	// done yet, but the references of the component are known.
	PostRead []Hook[T]
	// PreReconcile hooks run before the objects are generated, when the finalizer is in place. They do not run for a
	// deletion.
	PreReconcile []Hook[T]
	// PostReconcile hooks run in each request that finds all objects as desired, and ready. The component becomes Ready
	// only after they succeeded.
	PostReconcile []Hook[T]
	// PreDelete hooks run before the first object is deleted, when nothing blocks the deletion any more. They run until
	// all of them have succeeded, and then not again while objects are deleted. After a restart of the operator they
	// may run once more.
	PreDelete []Hook[T]
	// PostDelete hooks run after the last object is gone, before the finalizer is removed. They run until all of them
	// have succeeded.
	PostDelete []Hook[T]
}
