package component

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Hook is a piece of work that a component does beside deploying its objects. See [Hooks] for when.
//
// c is the client of the operator: it reads from the cache, and acts as the operator, not as the component. ctx carries what a
// [Context] does: the name of the reconciler, and in all but post-read hooks the local client and the client. component is the
// resource; a hook may change its status, which is written with everything else, and must change neither spec nor metadata.
//
// An error ends the request, and no later hook runs. With a [RetriableError] the component is Pending (or DeletionPending);
// with any other it is in state Error. A hook runs again after an error, after a crash, and after an error of what comes
// behind it, so it must be idempotent.
type Hook[T client.Object] func(ctx context.Context, c client.Client, component T) error

// Hooks are the hooks of a component. Those in one slice run one after the other, in order. The zero value has none.
type Hooks[T client.Object] struct {
	// PostRead hooks run first, in each request that is not about a suspended component, whether or not it is being deleted:
	// what the component refers to is known, nothing is done yet.
	PostRead []Hook[T]
	// PreReconcile hooks run before the objects are generated, in each request that is not about a deletion, once the
	// finalizer is in place.
	PreReconcile []Hook[T]
	// PostReconcile hooks run in each request that finds all objects as desired, and ready. The component becomes Ready only
	// once they succeeded.
	PostReconcile []Hook[T]
	// PreDelete hooks run before the first object is deleted, once nothing blocks the deletion any more. They run until all of
	// them have succeeded, and not again while objects are waited for; after a restart of the operator they may run once more.
	PreDelete []Hook[T]
	// PostDelete hooks run after the last object is gone, before the finalizer is removed. They run until all of them have
	// succeeded.
	PostDelete []Hook[T]
}
