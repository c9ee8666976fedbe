package reconcilers

import (
	"context"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/shard"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// WithShard returns a copy of c whose roots reconcile only the resources that a ring of processes has given to this
// one. The shard is that of package sharding, and the config has to be that of the cluster of its manager.
//
//   - A root does nothing for a resource that is not the shard's, and for none while the shard does not hold its Lease.
//   - If the ring asks for a resource back, the root does no work for it any more. When the request that runs has
//     ended, the root drops what it remembers of the resource, and takes the labels of the ring off it. No predicate of
//     the author keeps it from that.
//   - Webhooks are served by each process, and read past what the cache lacks.
//
// An [AggregateReconciler] and an [Embedded] cannot be sharded.
func (c Config) WithShard(s *shard.Shard) Config {
	c.shard = s
	if s != nil && c.Client != nil {
		c.Client = &shardReads{Client: c.Client, live: c.APIReader, shard: s}
		c.own = c.Client
	}
	return c
}

// beginOnShard notes that a request begins. It returns an error if the shard of the config does not hold its Lease.
func (r *rootParts[T]) beginOnShard(ctx context.Context, req Request) (_ context.Context, end func(), err error) {
	if r.config.shard == nil {
		return ctx, func() {}, nil
	}
	end, err = shard.Begin(r.config.shard)
	return shard.WithResource(ctx, resourceOfShard(r.config, r.resourceType, req)), end, err
}

func resourceOfShard(config Config, obj client.Object, req Request) shard.Resource {
	return shard.Resource{GroupKind: kindOf(config.Client, obj).GroupKind(), NamespacedName: req.NamespacedName}
}

// forgetArrival has nodes believe nothing of the resource that was read before they ask.
func forgetArrival(ctx context.Context, config Config) {
	if config.shard != nil {
		s := contextOf(ctx)
		shard.ForgetArrival(config.shard, resourceOfShard(config, s.originalResourceType, s.request))
	}
}

// buildOnShard builds a controller, which the manager of a shard refuses if the config has no shard.
func (r *rootParts[T]) buildOnShard(
	bldr *Builder, root reconcile.Reconciler,
) (built controller.Controller, err error) {
	if r.config.shard == nil {
		return bldr.Build(root)
	}
	kind := kindOf(r.config.Client, r.resourceType)
	err = shard.Admit(r.config.shard, kind, Describe(root), func() (err error) {
		built, err = bldr.Build(root)
		return err
	})
	return built, err
}

var errSharded = errors.New("cannot be sharded")

// checkUnsharded returns an error if a root that cannot be sharded has the config or the manager of a shard.
func (r *rootParts[T]) checkUnsharded(mgr Manager, reason string) error {
	if r.config.shard == nil && shard.Of(mgr) == nil {
		return nil
	}
	return r.errorf("%w: %s", errSharded, reason)
}

// watchShard has resources reconciled that the ring asks for back, whatever the predicates of the author say. So the
// watch is none of the builder's.
func watchShard(mgr Manager, bldr *Builder, config Config, obj client.Object) {
	if config.shard == nil {
		return
	}
	kind := kindOf(config.Client, obj).GroupKind()
	of := func(obj client.Object) shard.Resource {
		return shard.Resource{GroupKind: kind, NamespacedName: client.ObjectKeyFromObject(obj)}
	}
	enqueue := func(obj client.Object, queue workqueue.TypedRateLimitingInterface[Request]) {
		if shard.IsDraining(config.shard, obj) {
			queue.Add(Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		}
	}
	bldr.WatchesRawSource(source.Kind(mgr.GetCache(), obj, handler.Funcs{
		CreateFunc: func(
			_ context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[Request],
		) {
			shard.Arrive(config.shard, of(e.Object))
			enqueue(e.Object, queue)
		},
		UpdateFunc: func(
			_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[Request],
		) {
			enqueue(e.ObjectNew, queue)
		},
		DeleteFunc: func(
			_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[Request],
		) {
			shard.ForgetArrival(config.shard, of(e.Object))
		},
	}))
}

// notForShard reports whether the tree does not run, because the resource is not the shard's or is to become another's.
// What is remembered of the resource is dropped. The resource may share memory with the cache.
func (r *ResourceReconciler[T]) notForShard(
	ctx context.Context, config Config, req Request, resource T,
) (bool, error) {
	if config.shard == nil {
		return false, nil
	}
	if resource.GetNamespace() == "" {
		return true, reconcile.TerminalError(
			fmt.Errorf("%s %w: %w", describeObject(resource), errSharded, errClusterScoped))
	}
	duty := shard.DutyFor(config.shard, resource)
	if duty == shard.Reconcile {
		return false, nil
	}
	// Another process may have the resource as soon as the labels are gone, so nothing may be left by then. If the
	// resource comes back, what was read before it left is not believed.
	r.forget(ctx, config, r.Type, req)
	of := resourceOfShard(config, r.Type, req)
	shard.ForgetArrival(config.shard, of)
	if duty == shard.Ignore {
		return true, nil
	}
	if err := shard.Settled(config.shard, of); err != nil {
		return true, fmt.Errorf("does not give %s back to the ring %q yet: %w: %w", describeObject(resource),
			config.shard.Ring(), err, ErrQuiet)
	}
	return true, giveBack(ctx, config, resource)
}

// keepRingLabels gives an object that is about to be written the labels of the ring that actual has.
func keepRingLabels(ctx context.Context, actual, written client.Object) {
	if s := contextOf(ctx).config.shard; s != nil {
		shard.KeepLabels(s, actual, written)
	}
}

// withoutRingLabels returns obj, which may be nil, or a copy of it without the labels of the ring if there are any.
func withoutRingLabels[T client.Object](config Config, obj T) T {
	if config.shard == nil || gotype.IsNil(obj) || !shard.IsLabelled(config.shard, obj) {
		return obj
	}
	obj = copyOf(obj)
	shard.Unassign(config.shard, obj)
	return obj
}

// giveBackFirst gives a resource back before hooks of the author are called, which may end the request.
func (r *ResourceReconciler[T]) giveBackFirst(ctx context.Context, req Request) (done bool, err error) {
	config, err := RetrieveOriginalConfig(ctx)
	if err != nil {
		return false, err
	}
	resource := copyOf(r.Type)
	if err := r.fetch(ctx, config, req, resource); err != nil {
		// The handling of the request meets the error again.
		return false, nil
	}
	if shard.DutyFor(config.shard, resource) != shard.GiveBack {
		return false, nil
	}
	return r.notForShard(ctx, config, req, resource)
}

var errClusterScoped = errors.New("the ring does not assign objects without a namespace")

// giveBack takes the labels of the ring off a resource, unless it has changed. The next request finds it gone.
func giveBack(ctx context.Context, config Config, resource client.Object) error {
	base := resource.DeepCopyObject().(client.Object)
	given := resource.DeepCopyObject().(client.Object)
	shard.Unassign(config.shard, given)
	err := config.Patch(ctx, given, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	if apierrs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("unable to give %s back to the ring %q: %w", describeObject(base), config.shard.Ring(), err)
	}
	shard.CountGivenBack(config.shard)
	return nil
}
