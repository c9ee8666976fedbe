package reconcilers

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// watch has the request due once at the start, as nothing else makes an object that is not there, and after each event
// of the object.
func (r *AggregateReconciler[T]) watch(mgr Manager, bldr *Builder) {
	start := func(_ context.Context, queue workqueue.TypedRateLimitingInterface[Request]) error {
		queue.Add(r.Request)
		return nil
	}
	bldr.WatchesRawSource(source.Func(start))

	obj := watchable(r.Type, mgr.GetScheme())
	if len(r.SetupForOptions) == 0 {
		bldr.For(obj, builder.WithPredicates(predicate.NewPredicateFuncs(r.isOurs)))
		return
	}
	options, ok := watchesOptions(r.SetupForOptions)
	if !ok {
		bldr.For(obj, r.SetupForOptions...)
		return
	}
	// A watch has the predicates that were given last, and those of the author cannot be read. So the object is watched
	// once more, with the author's options and a handler that knows the name, and the watch that makes it the
	// controller's own lets nothing through.
	nothing := builder.WithPredicates(predicate.NewPredicateFuncs(func(client.Object) bool { return false }))
	bldr.For(obj, append(append([]builder.ForOption{}, r.SetupForOptions...), nothing)...)
	bldr.Watches(obj, handler.EnqueueRequestsFromMapFunc(r.requestsOf), options...)
}

func watchesOptions(options []builder.ForOption) ([]builder.WatchesOption, bool) {
	var converted []builder.WatchesOption
	for _, option := range options {
		c, ok := option.(builder.WatchesOption)
		if !ok {
			return nil, false
		}
		converted = append(converted, c)
	}
	return converted, true
}

func (r *AggregateReconciler[T]) isOurs(obj client.Object) bool {
	return client.ObjectKeyFromObject(obj) == r.Request.NamespacedName
}

func (r *AggregateReconciler[T]) requestsOf(_ context.Context, obj client.Object) []Request {
	if !r.isOurs(obj) {
		return nil
	}
	return []Request{r.Request}
}
