package informer

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

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
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Tracked are the types whose events reach the tracker of one controller. A type that the set-up did not watch is
// watched when it is tracked first.
type Tracked struct {
	log     logr.Logger
	manager cluster.Cluster

	mu sync.Mutex
	// run and queue are those of the running controller. They are nil until it starts.
	run    context.Context
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	byType map[Type]*trackedWatch
	// kinds know which informers have to stay in a cache. It holds them, so that they know.
	kinds []*Kinds
}

// NewTracked returns a Tracked without any type.
func NewTracked() *Tracked {
	return &Tracked{byType: map[Type]*trackedWatch{}}
}

// Type is a type in a cluster, and who is told of its events. The version and the representation do not matter,
// because a tracker knows objects by group and kind.
type Type struct {
	Tracker tracker.Tracker
	// Cluster is the cluster of the objects, or nil for the manager's.
	Cluster cluster.Cluster
	Kind    schema.GroupKind
}

// trackedWatch is the watch of a [Type].
type trackedWatch struct {
	wait wait
	// mu is held while the watch is started. Who tracks the type meanwhile waits for the watch too.
	mu sync.Mutex
	// started is true once the events reach the tracker.
	started bool
}

// StartWith starts watches in the controller that bldr builds, once the controller runs: after the election of a
// leader.
func (w *Tracked) StartWith(ctx context.Context, mgr cluster.Cluster, bldr *builder.Builder) {
	w.log, w.manager = logr.FromContextOrDiscard(ctx), mgr
	bldr.WatchesRawSource(source.Func(
		func(run context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.run, w.queue = run, queue
			return nil
		}))
}

// Keep notes that a watch of a kind is not one of [Kinds], so that its informer has to stay in the cache. In is nil for
// the cluster of the manager.
func (w *Tracked) Keep(in cluster.Cluster, kind schema.GroupVersionKind) {
	if in == nil {
		in = w.manager
	}
	if in == nil {
		return
	}
	kinds := kindsOf(in, true)
	kinds.keep(kind)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.kinds, kinds) {
		w.kinds = append(w.kinds, kinds)
	}
}

// Queue returns the context and the queue of the controller. They are nil if it does not run.
func (w *Tracked) Queue() (run context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.run, w.queue
}

// Watched notes that another watch shows a type.
func (w *Tracked) Watched(t Type) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byType[t] == nil {
		w.byType[t] = &trackedWatch{started: true}
	}
}

// Watch starts the watch of a type that is not watched yet, and waits for its events; a timeout of 0 is
// [DefaultTimeout]. It does nothing if the controller does not run. It also does nothing if the API server does not
// serve the type, because reading says so. It calls read only if there is a watch to start.
func (w *Tracked) Watch(
	ctx context.Context, t Type, timeout time.Duration, read func(log logr.Logger) Read,
) error {
	watch := w.watchOf(t, timeout)
	if watch == nil {
		return nil
	}
	watch.mu.Lock()
	defer watch.mu.Unlock()
	if watch.started {
		return nil
	}
	return w.start(ctx, watch, cmp.Or(t.Cluster, w.manager), read(w.log))
}

// watchOf returns the watch of a type. It returns nil if there is none and the controller does not run.
func (w *Tracked) watchOf(t Type, timeout time.Duration) *trackedWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	watch := w.byType[t]
	if watch == nil && w.run != nil {
		watch = &trackedWatch{wait: wait{timeout: timeout}}
		w.byType[t] = watch
	}
	return watch
}

// Read is a read of a type whose watch has to be started.
type Read struct {
	// Namespace is where the objects are read; empty for all.
	Namespace string
	Kind      schema.GroupVersionKind
	// Item is an object of the type, in the representation in which it is read: a read from the cache has an informer
	// for that.
	Item    client.Object
	Handler handler.EventHandler
}

// start starts the watch of a type, and waits until its events arrive: what happens after the read that follows must
// not be missed. The lock of the watch is held.
//
// A source of controller-runtime cannot be used, because it waits for all informers of the cache.
func (w *Tracked) start(ctx context.Context, watch *trackedWatch, in cluster.Cluster, read Read) error {
	informer, err := in.GetCache().GetInformer(ctx, read.Item, cache.BlockUntilSynced(false))
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	limited, cancel := watch.wait.context(ctx)
	defer cancel()
	if !toolscache.WaitForCacheSync(limited.Done(), informer.HasSynced) {
		return cmp.Or(ctx.Err(), notSynced(ctx, in, read.Kind, read.Namespace))
	}
	added, err := informer.AddEventHandler(w.EventsFor(read.Handler))
	if err != nil {
		return err
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), added.HasSynced) {
		return cmp.Or(informer.RemoveEventHandler(added), ctx.Err())
	}
	watch.started = true
	w.Keep(in, read.Kind)
	w.log.Info("watching a type that is tracked", "type", read.Kind.GroupKind().String())
	return nil
}

// EventsFor passes the events of an informer to a handler, with the queue of the controller.
func (w *Tracked) EventsFor(handler handler.EventHandler) toolscache.ResourceEventHandler {
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

// Item returns an object that an informer shows for obj, an object or a list: of the same Go type, or
// unstructured or metadata if obj is.
func Item(obj runtime.Object, gvk schema.GroupVersionKind, scheme *runtime.Scheme) client.Object {
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
