package reconcilers

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/tracker"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// trackedTypes are the types whose events reach the tracker of one controller. A type that the set-up did not watch is
// watched when it is tracked first.
type trackedTypes struct {
	log     logr.Logger
	manager cluster.Cluster

	mu sync.Mutex
	// run and queue are those of the running controller. They are nil until it starts.
	run    context.Context
	queue  workqueue.TypedRateLimitingInterface[Request]
	byType map[trackedType]*trackedWatch
}

// trackedType is a type in a cluster, and who is told of its events. The version and the representation do not matter,
// because a tracker knows objects by group and kind.
type trackedType struct {
	tracker tracker.Tracker
	// cluster is the cluster of the objects, or nil for the manager's.
	cluster cluster.Cluster
	kind    schema.GroupKind
}

// trackedWatch is the watch of a trackedType.
type trackedWatch struct {
	wait syncWait
	// mu is held while the watch is started. Who tracks the type meanwhile waits for the watch too.
	mu sync.Mutex
	// started is true once the events reach the tracker.
	started bool
}

func (s *treeContext) trackedType(config Config, gvk schema.GroupVersionKind) trackedType {
	return trackedType{tracker: config.Tracker, cluster: s.otherCluster(config), kind: gvk.GroupKind()}
}

// startWith starts watches in the controller that bldr builds, once the controller runs: after the election of a
// leader.
func (w *trackedTypes) startWith(ctx context.Context, mgr cluster.Cluster, bldr *Builder) {
	w.log, w.manager = logr.FromContextOrDiscard(ctx), mgr
	bldr.WatchesRawSource(source.Func(
		func(run context.Context, queue workqueue.TypedRateLimitingInterface[Request]) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.run, w.queue = run, queue
			return nil
		}))
}

// watched notes that another watch shows a type.
func (w *trackedTypes) watched(t trackedType) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byType[t] == nil {
		w.byType[t] = &trackedWatch{started: true}
	}
}

// watchedByHand returns a function that takes the objects of events which arrived at a handler of [EnqueueTracked]. It
// notes that their types are watched: the author may have given the handler to the builder.
func (s *treeContext) watchedByHand(config Config) func(client.Object) {
	if s.watches == nil || config.Tracker == nil {
		return func(client.Object) {}
	}
	types, t := &s.watches.tracked, s.trackedType(config, schema.GroupVersionKind{})
	return func(obj client.Object) {
		shown := t
		shown.kind = kindOf(config.Client, obj).GroupKind()
		types.watched(shown)
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
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		// Tracking and reading fail for the same reason.
		return nil
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	if s.watches == nil {
		sayUnwatched(ctx, gvk.GroupKind())
		return nil
	}
	types := &s.watches.tracked
	t := s.trackedType(c, gvk)
	watch := types.watchOf(t, c)
	if watch == nil {
		return nil
	}
	watch.mu.Lock()
	defer watch.mu.Unlock()
	if watch.started {
		return nil
	}
	err = types.start(ctx, watch, trackedRead{
		in: cmp.Or(t.cluster, types.manager), namespace: namespace, gvk: gvk, item: informedOf(obj, gvk, c.Scheme()),
		handler: s.enqueueTracked(types.log, c),
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

// watchOf returns the watch of a type. It returns nil if there is none and the controller does not run.
func (w *trackedTypes) watchOf(t trackedType, config Config) *trackedWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	watch := w.byType[t]
	if watch == nil && w.run != nil {
		watch = &trackedWatch{wait: syncWait{timeout: config.timeoutForSync()}}
		w.byType[t] = watch
	}
	return watch
}

// trackedRead is a read of a type whose watch has to be started.
type trackedRead struct {
	in        cluster.Cluster
	namespace string
	gvk       schema.GroupVersionKind
	// item is an object of the type, in the representation in which it is read: a read from the cache has an informer
	// for that.
	item    client.Object
	handler handler.EventHandler
}

// start starts the watch of a type, and waits until its events arrive: what happens after the read that follows must
// not be missed. The lock of the watch is held.
//
// A source of controller-runtime cannot be used, because it waits for all informers of the cache.
func (w *trackedTypes) start(ctx context.Context, watch *trackedWatch, read trackedRead) error {
	informer, err := read.in.GetCache().GetInformer(ctx, read.item, cache.BlockUntilSynced(false))
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	limited, cancel := watch.wait.context(ctx)
	defer cancel()
	if !toolscache.WaitForCacheSync(limited.Done(), informer.HasSynced) {
		return cmp.Or(ctx.Err(), notSynced(ctx, read.in, read.gvk, read.namespace))
	}
	added, err := informer.AddEventHandler(w.eventsFor(read.handler))
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), added.HasSynced) {
		return cmp.Or(informer.RemoveEventHandler(added), ctx.Err())
	}
	watch.started = true
	w.log.Info("watching a type that is tracked", "type", read.gvk.GroupKind().String())
	return nil
}

// eventsFor passes the events of an informer to a handler, with the queue of the controller.
func (w *trackedTypes) eventsFor(handler handler.EventHandler) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(shown any, initial bool) {
			if obj, ok := shown.(client.Object); ok {
				handler.Create(w.run, event.CreateEvent{Object: obj, IsInInitialList: initial}, w.queue)
			}
		},
		UpdateFunc: func(before, after any) {
			from, known := before.(client.Object)
			if to, ok := after.(client.Object); known && ok {
				handler.Update(w.run, event.UpdateEvent{ObjectOld: from, ObjectNew: to}, w.queue)
			}
		},
		DeleteFunc: func(shown any) {
			missed, unknown := shown.(toolscache.DeletedFinalStateUnknown)
			if unknown {
				shown = missed.Obj
			}
			if obj, ok := shown.(client.Object); ok {
				handler.Delete(w.run, event.DeleteEvent{Object: obj, DeleteStateUnknown: unknown}, w.queue)
			}
		},
	}
}

// informedOf returns an object that an informer shows for obj, an object or a list: of the same Go type, or
// unstructured or metadata if obj is.
func informedOf(obj runtime.Object, gvk schema.GroupVersionKind, scheme *runtime.Scheme) client.Object {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(gvk)
		return metadata
	case runtime.Unstructured:
	default:
		if made, err := scheme.New(gvk); err == nil && !duck.IsDuck(obj, scheme) {
			if typed, ok := made.(client.Object); ok {
				return typed
			}
		}
	}
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(gvk)
	return untyped
}
