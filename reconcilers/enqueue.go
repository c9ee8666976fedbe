package reconcilers

import (
	"context"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/tracker"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// EnqueueTracked returns an event handler that wakes the resources which track the object of the event. The context
// must be the context of a set-up. Its config has the tracker, and its resource type is the type of the resources to
// wake. EnqueueTracked panics without a config. If the config has no tracker, the handler wakes no resource.
//
//	bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
//
// If the tracker fails, the handler wakes no resource and logs the error, unless it is quiet.
func EnqueueTracked(ctx context.Context) handler.EventHandler {
	return contextOf(ctx).enqueueTracked(logr.FromContextOrDiscard(ctx), RetrieveConfigOrDie(ctx))
}

// enqueueTracked is [EnqueueTracked] with the tracker of config.
func (s *treeContext) enqueueTracked(log logr.Logger, config Config) handler.EventHandler {
	observers := observersOf(config, s.originalResourceType)
	watched := s.watchedByHand(config)
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []Request {
		watched(obj)
		names, err := observers(obj)
		if err != nil {
			if !isQuiet(err) {
				log.Error(err, "unable to get tracked requests")
			}
			return nil
		}
		requests := make([]Request, len(names))
		for i, name := range names {
			requests[i] = Request{NamespacedName: name}
		}
		return requests
	})
}

// observersOf returns a function that looks up the resources that track an object. If the tracker can look up by kind,
// the function skips resources of other controllers that share the tracker.
func observersOf(config Config, watcher client.Object) func(client.Object) ([]types.NamespacedName, error) {
	if config.Tracker == nil {
		return func(client.Object) ([]types.NamespacedName, error) { return nil, nil }
	}
	byKind, ok := config.Tracker.(tracker.KindObservers)
	if !ok || gotype.IsNil(watcher) {
		return config.Tracker.GetObservers
	}
	kind := kindOf(config.Client, watcher).GroupKind()
	if kind.Empty() {
		return config.Tracker.GetObservers
	}
	return func(obj client.Object) ([]types.NamespacedName, error) {
		return byKind.ObserversOfKind(obj, kind)
	}
}
