package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/informer"
	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/internal/shard"
	"github.com/espalier-dev/espalier/tracker"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	tracked *informer.Tracked
	// optional are the handlers of kinds that are watched when they are needed first.
	optional map[optionalKind]*lateWatch
	// untyped are the optional kinds that are watched as unstructured objects, and so are in the cache.
	untyped map[optionalKind]bool
	// causes has what brought requests about; nil unless observers listen.
	causes *causes
	// mgr is the manager of the set-up.
	mgr Manager
}

func newWatches() *watches {
	return &watches{
		byType: map[watchedType]*fanOut{}, tracked: informer.NewTracked(), optional: map[optionalKind]*lateWatch{},
		untyped: map[optionalKind]bool{},
	}
}

// leavePanics reports whether the manager is configured not to recover from panics.
func (w *watches) leavePanics() bool {
	if w == nil || gotype.IsNil(w.mgr) {
		return false
	}
	recovers := w.mgr.GetControllerOptions().RecoverPanic
	return recovers != nil && !*recovers
}

// kinds returns the types that the builder watches for the nodes.
func (w *watches) kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for typ, fan := range w.byType {
		if fan.late == nil {
			kinds = append(kinds, typ.Kind())
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// noting returns a handler that notes the causes of the requests which inner makes, if observers listen.
func (w *watches) noting(inner handler.EventHandler) handler.EventHandler {
	if w == nil {
		return inner
	}
	return w.causes.of(inner)
}

// causesOf returns why a request runs. It returns nil unless observers listen.
func (w *watches) causesOf(req Request) []Cause {
	if w == nil || w.causes == nil {
		return nil
	}
	return w.causes.take(req)
}

// requestEnded notes what a request has asked for.
func (w *watches) requestEnded(req Request, result Result, err error) {
	if w != nil {
		w.causes.ended(req, result, err)
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
	// late is an object in the representation of the events if the builder does not have the watch. It is nil
	// otherwise.
	late client.Object
	// renew adds the indexes of a new informer of a watch that the builder does not have.
	renew []func(ctx context.Context)
}

var errNoBuilder = errors.New("there is no builder to add a watch to")

// watchOwned wakes the resource that controls an object of the type of obj. An optional kind is watched when it is
// needed first.
func watchOwned(ctx context.Context, mgr Manager, bldr *Builder, obj client.Object, optional bool) error {
	fan, err := fanOutFor(ctx, bldr, obj, optional)
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
	enqueue := handler.EnqueueRequestForOwner(
		mgr.GetScheme(), mgr.GetRESTMapper(), owner, handler.OnlyControllerOwner())
	fan.handlers = append(fan.handlers, contextOf(ctx).watches.noting(enqueue))
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
	wanted := contextOf(ctx).optionalType
	optional := !gotype.IsNil(wanted) && kindOf(config.Client, wanted) == kindOf(config.Client, obj)
	return watchTracked(ctx, bldr, obj, optional)
}

func watchTracked(ctx context.Context, bldr *Builder, obj client.Object, optional bool) error {
	config, err := RetrieveConfig(ctx)
	if err != nil {
		return err
	}
	fan, err := fanOutFor(ctx, bldr, obj, optional)
	if err != nil || config.Tracker == nil {
		return err
	}
	if slices.Contains(fan.trackers, config.Tracker) {
		return nil
	}
	fan.trackers = append(fan.trackers, config.Tracker)
	fan.handlers = append(fan.handlers, EnqueueTracked(ctx))
	if s := contextOf(ctx); s.watches != nil && fan.late == nil {
		s.watches.tracked.Watched(s.trackedType(config, kindOf(config.Client, obj)))
	}
	return nil
}

// fanOutFor returns the handler of the watch for the type of obj, and adds the watch at the first call. In a set-up
// without a root (a node in a hand-written controller) each call adds a watch, because watches are not registered
// there.
func fanOutFor(ctx context.Context, bldr *Builder, obj client.Object, optional bool) (*fanOut, error) {
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
	fan := &fanOut{}
	if registered != nil {
		if known, ok := registered.byType[key]; ok {
			if known.late == nil || optional {
				return known, nil
			}
			fan = known
		}
	}
	obj = watchable(obj, config.Scheme())
	if _, untyped := obj.(runtime.Unstructured); untyped && optional && registered != nil {
		registered.untyped[optionalKind{other, kindOf(config.Client, obj)}] = true
	}
	fan.late = nil
	if optional {
		if err := watchLate(ctx, config, obj, fan); err != nil {
			return nil, err
		}
	}
	if fan.late == nil {
		keepWatched(ctx, config, obj)
	}
	switch {
	case fan.late != nil:
	case other == nil:
		bldr.Watches(obj, fan)
	default:
		// The builder knows the cache of the manager only.
		log := logr.FromContextOrDiscard(ctx)
		bldr.WatchesRawSource(informer.NewSource(log, other, config.syncTimeout, obj, fan))
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
	return s.watches.noting(handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []Request {
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
	}))
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

func (s *treeContext) trackedType(config Config, gvk schema.GroupVersionKind) informer.Type {
	return informer.Type{Tracker: config.Tracker, Cluster: s.otherCluster(config), Kind: gvk.GroupKind()}
}

// watchedByHand returns a function that takes the objects of events which arrived at a handler of [EnqueueTracked]. It
// notes that their types are watched: the author may have given the handler to the builder.
func (s *treeContext) watchedByHand(config Config) func(client.Object) {
	if s.watches == nil || config.Tracker == nil {
		return func(client.Object) {}
	}
	tracked, t := s.watches.tracked, s.trackedType(config, schema.GroupVersionKind{})
	return func(obj client.Object) {
		shown := t
		shown.Kind = kindOf(config.Client, obj).GroupKind()
		tracked.Watched(shown)
	}
}

// watchTracked starts the watch of the type of obj, an object or a list that is read in namespace, or in all. It does
// nothing if the type is watched, and if the controller does not run. It also does nothing if the API server does not
// serve the type, because reading says so.
func (c Config) watchTracked(ctx context.Context, obj runtime.Object, namespace string) error {
	s := contextOf(ctx)
	if c.Tracker == nil || c.Tracker == tracker.Tracker(untracked{}) || s.watches == nil && c.cluster == nil {
		return nil
	}
	gvk, err := c.itemKind(obj)
	if err != nil {
		// Tracking and reading fail for the same reason.
		return nil
	}
	if filters, _ := shard.Filters(c.shard, gvk); filters {
		return fmt.Errorf("unable to track %s, of which the shard sees its own objects alone: "+
			"have a node of the tree say that it reads the type, as the Uses of a SyncReconciler do", gvk.Kind)
	}
	if s.optionalWatch(c, gvk) != nil {
		return c.readyKind(ctx, gvk, namespace)
	}
	if s.watches == nil {
		sayUnwatched(ctx, gvk.GroupKind())
		return nil
	}
	err = s.watches.tracked.Watch(ctx, s.trackedType(c, gvk), c.syncTimeout, func(log logr.Logger) informer.Read {
		return informer.Read{
			Namespace: namespace, Kind: gvk, Item: informer.Item(obj, gvk, c.Scheme()),
			Handler: s.enqueueTracked(log, c),
		}
	})
	if err != nil {
		return fmt.Errorf("unable to watch %s: %w", gvk.Kind, err)
	}
	return nil
}

// saidUnwatched has the kinds that sayUnwatched has logged.
var saidUnwatched sync.Map

// sayUnwatched logs, once in a program, that a type is tracked without a controller that could watch it.
func sayUnwatched(ctx context.Context, kind schema.GroupKind) {
	if _, said := saidUnwatched.LoadOrStore(kind, true); !said {
		logr.FromContextOrDiscard(ctx).Info("a type is tracked by a reconciler that no root and no Embed has set up, "+
			"so no watch of it is started: unless the controller has one, add "+
			"Watches(object of the type, reconcilers.EnqueueTracked(ctx)) to its builder", "type", kind.String())
	}
}
