package reconcilers

import (
	"context"
	"errors"
	"slices"

	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/tracker"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// watches are the watches that the nodes of one tree asked for. Each type is watched once, also if several nodes use
// it, so that one event wakes a resource once. The watches of byType are those of the set-up.
type watches struct {
	byType  map[watchedType]*fanOut
	tracked trackedTypes
}

func newWatches() *watches {
	return &watches{
		byType:  map[watchedType]*fanOut{},
		tracked: trackedTypes{byType: map[trackedType]*trackedWatch{}},
	}
}

type watchedType struct {
	builder *Builder
	// cluster is the cluster of the objects, or nil for the manager's.
	cluster cluster.Cluster
	listing.Key
}

// fanOut is the handler of one watch. It passes each event to its handlers. Nodes add handlers only while they are set
// up, before the manager starts.
type fanOut struct {
	handlers []handler.EventHandler
	owner    bool
	trackers []tracker.Tracker
}

var errNoBuilder = errors.New("there is no builder to add a watch to")

// watchOwned wakes the resource that controls an object of the type of obj.
func watchOwned(ctx context.Context, mgr Manager, bldr *Builder, obj client.Object) error {
	fan, err := fanOutFor(ctx, bldr, obj)
	if err != nil || fan.owner {
		return err
	}
	owner, err := wokenType(ctx)
	if err != nil {
		return err
	}
	owner = watchable(owner, mgr.GetScheme())
	if _, err := mgr.GetClient().GroupVersionKindFor(owner); err != nil {
		return err
	}
	fan.owner = true
	fan.handlers = append(fan.handlers,
		handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), owner, handler.OnlyControllerOwner()))
	return nil
}

// WatchTracked adds a watch for the type of obj to the controller, in the cluster of the current [Config]. Its events
// wake the resources that track the object of the event, see [Config.TrackAndGet]. A node calls it in SetupWithManager
// for each type that it tracks. A type is watched once, also if several nodes ask for it.
//
// It returns an error if the context has no config, and if bldr is nil.
func WatchTracked(ctx context.Context, bldr *Builder, obj client.Object) error {
	config, err := RetrieveConfig(ctx)
	if err != nil {
		return err
	}
	fan, err := fanOutFor(ctx, bldr, obj)
	if err != nil || config.Tracker == nil {
		return err
	}
	if slices.Contains(fan.trackers, config.Tracker) {
		return nil
	}
	fan.trackers = append(fan.trackers, config.Tracker)
	fan.handlers = append(fan.handlers, EnqueueTracked(ctx))
	if s := contextOf(ctx); s.watches != nil {
		s.watches.tracked.watched(s.trackedType(config, kindOf(config.Client, obj)))
	}
	return nil
}

// fanOutFor returns the handler of the watch for the type of obj, and adds the watch at the first call. In a set-up
// without a root (a node in a hand-written controller) each call adds a watch, because watches are not registered
// there.
func fanOutFor(ctx context.Context, bldr *Builder, obj client.Object) (*fanOut, error) {
	if bldr == nil {
		return nil, errNoBuilder
	}
	config, err := RetrieveConfig(ctx)
	if err != nil {
		return nil, err
	}
	other := otherCluster(ctx, config)
	key := watchedType{builder: bldr, cluster: other, Key: indexedType(config.Client, obj).Key()}
	registered := contextOf(ctx).watches
	if registered != nil {
		if fan, ok := registered.byType[key]; ok {
			return fan, nil
		}
	}
	fan := &fanOut{}
	obj = watchable(obj, config.Scheme())
	if other == nil {
		bldr.Watches(obj, fan)
	} else {
		// The builder knows the cache of the manager only.
		log := logr.FromContextOrDiscard(ctx)
		bldr.WatchesRawSource(newOtherSource(log, other, config.timeoutForSync(), obj, fan))
	}
	if registered != nil {
		registered.byType[key] = fan
	}
	return fan, nil
}

// otherCluster returns the cluster of config if a [WithConfig] replaced the cluster of the root. Otherwise it returns
// nil.
func otherCluster(ctx context.Context, config Config) cluster.Cluster {
	return contextOf(ctx).otherCluster(config)
}

func (s *treeContext) otherCluster(config Config) cluster.Cluster {
	if !s.hasOriginalConfig || config.cluster == s.originalConfig.cluster {
		return nil
	}
	return config.cluster
}

var _ handler.EventHandler = (*fanOut)(nil)

func (f *fanOut) Create(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[Request]) {
	for _, h := range f.handlers {
		h.Create(ctx, e, q)
	}
}

func (f *fanOut) Update(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[Request]) {
	for _, h := range f.handlers {
		h.Update(ctx, e, q)
	}
}

func (f *fanOut) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[Request]) {
	for _, h := range f.handlers {
		h.Delete(ctx, e, q)
	}
}

func (f *fanOut) Generic(ctx context.Context, e event.GenericEvent, q workqueue.TypedRateLimitingInterface[Request]) {
	for _, h := range f.handlers {
		h.Generic(ctx, e, q)
	}
}
