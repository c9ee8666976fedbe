package reconcilers

import (
	"context"

	"github.com/espalier-dev/espalier/tracker"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// EnqueueTracked returns an event handler that wakes the resources which track the object of the event. The context
// must be that of a set-up: its config has the tracker, its resource type says whom to wake. It panics if there is no
// config, and wakes nobody if that has no tracker.
//
//	bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
//
// A look-up that fails wakes nobody and is logged, unless its error is quiet.
func EnqueueTracked(ctx context.Context) handler.EventHandler {
	log := logr.FromContextOrDiscard(ctx)
	config := RetrieveConfigOrDie(ctx)
	observers := observersOf(config, RetrieveOriginalResourceType(ctx))

	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []Request {
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

// observersOf returns the look-up of those who watch an object. Where the tracker can tell watchers of different kinds
// apart, resources of another controller that share it are left alone.
func observersOf(config Config, watcher client.Object) func(client.Object) ([]types.NamespacedName, error) {
	if config.Tracker == nil {
		return func(client.Object) ([]types.NamespacedName, error) { return nil, nil }
	}
	byKind, ok := config.Tracker.(tracker.KindObservers)
	if !ok || isNil(watcher) {
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
