package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/informer"
	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/internal/shard"
	"github.com/espalier-dev/espalier/tracker"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Config has the clients of one cluster, the event recorders, and the tracker that a tree works with. It is comparable,
// and copied by value.
//
// [NewConfig] returns the config for the manager's cluster. A struct literal works too, for an existing controller or
// for a test. Nodes cannot use the fields that it leaves empty, and they find children by listing the namespace, not by
// an index.
type Config struct {
	// Client reads through the manager's cache and writes to the API server. It understands duck types.
	client.Client
	// APIReader reads from the API server, past the cache.
	APIReader client.Reader
	// Discovery reads which APIs the API server serves.
	Discovery discovery.DiscoveryInterface
	// Recorder records the events of this toolkit, with the older events API of the core group.
	Recorder record.EventRecorder
	// EventRecorder records events with the API events.k8s.io. The author's nodes may use it.
	events.EventRecorder
	// Tracker remembers which resources are woken by which objects.
	Tracker tracker.Tracker

	syncPeriod time.Duration
	// syncTimeout is how long readers wait for an informer to sync. Zero means [informer.DefaultTimeout].
	syncTimeout time.Duration
	// cluster is the cluster of Client and of the objects that Tracker tracks. It is nil in a struct literal.
	cluster cluster.Cluster
	// cached reads unstructured objects, and ducks, from the cache that the client own reads other objects from. Both
	// are nil in a struct literal.
	cached client.Reader
	own    client.Client
	// owners finds children by their owner. It is nil if no index is possible.
	owners *listing.Index
	// observers are told what trees with the config do. It is nil for none.
	observers *observerList
	// namespaced has the kinds that are known to be namespaced. It is nil in a struct literal.
	namespaced *sync.Map
	// shard is what the process is to its ring; nil if the roots are not sharded.
	shard *shard.Shard
}

// NewConfig returns the config for the manager's own cluster. apiType is not used, and exists for compatibility.
// syncPeriod is the sync period of the manager's cache. A track that was made outside of a root expires after twice
// that time.
func NewConfig(mgr Manager, apiType client.Object, syncPeriod time.Duration) Config {
	return Config{syncPeriod: syncPeriod}.
		withCluster(mgr, informer.NewClient(mgr, false, 0, explainKind)).WithTracker()
}

// IsEmpty reports whether c is the zero value.
func (c Config) IsEmpty() bool {
	return c == Config{}
}

// WithCluster returns a config for another cluster. It shares the tracker with c, so its tracks wake the same
// controller. A track made with the new config refers to an object of the other cluster.
//
// The identity of the cluster needs the rights to list and watch each type that is read from its cache: in all
// namespaces, unless the options of the cache limit it to some. A read from a cache that does not sync returns an error
// after 30 seconds, which names the type, the user and the missing right. Later reads return it without a delay until
// the cache has synced. The controller starts without such a cache.
//
// It panics if the cluster's REST config is not valid for a discovery client, which is a mistake in the program.
func (c Config) WithCluster(other cluster.Cluster) Config {
	return c.withCluster(other, informer.NewClient(other, true, c.syncTimeout, explainKind))
}

// withCluster is [Config.WithCluster] with the given client of the cluster.
func (c Config) withCluster(other cluster.Cluster, inner client.Client) Config {
	c.Client = duck.NewDuckAwareClientWrapper(inner)
	c.APIReader = duck.NewDuckAwareAPIReaderWrapper(other.GetAPIReader(), other.GetClient())
	c.Discovery = discovery.NewDiscoveryClientForConfigOrDie(other.GetConfig())
	//lint:ignore SA1019 compatible trees record events with the API of before events.k8s.io
	c.Recorder = other.GetEventRecorderFor("controller")
	c.EventRecorder = other.GetEventRecorder("controller")
	c.cluster = other
	c.own = c.Client
	c.cached = duck.NewDuckAwareAPIReaderWrapper(
		informer.NewCacheReader(other, c.syncTimeout, explainKind), other.GetClient())
	c.owners = listing.NewIndex(other.GetFieldIndexer())
	c.namespaced = &sync.Map{}
	// The objects of another cluster belong to no shard.
	c.shard = nil
	if c.Tracker != nil {
		c.Tracker = tracker.InCluster(c.Tracker, other)
	}
	return c
}

// Cluster returns the cluster that Client reads and writes. It returns nil for a config that was not made by
// [NewConfig] or [Config.WithCluster].
func (c Config) Cluster() cluster.Cluster {
	return c.cluster
}

// WithTracker returns a copy of c with a new tracker.
func (c Config) WithTracker() Config {
	c.Tracker = tracker.New(c.Scheme(), 2*c.syncPeriod)
	if c.cluster != nil {
		c.Tracker = tracker.InCluster(c.Tracker, c.cluster)
	}
	return c
}

// WithDangerousDuckClientOperations returns a copy of c whose client also creates and updates duck-typed objects. It is
// dangerous, because an update removes all fields that the duck type lacks.
func (c Config) WithDangerousDuckClientOperations() Config {
	c.Client = duck.NewDangerousDuckAwareClientWrapper(c.Client)
	c.own = c.Client
	return c
}

// TrackAndGet reads an object and tracks it: the resource of the request is reconciled again whenever the object
// changes. The namespace of the key does not count for a cluster-scoped kind. The object is tracked even if it is not
// found, so its creation also counts as a change. Outside a request, or for an object that cannot be tracked,
// TrackAndGet returns an error and reads nothing.
//
// Below a root, TrackAndGet starts the watch of a type when it is tracked first, unless a node watches the type. The
// identity of the config needs the rights to list and watch it. If the watch does not start within 30 seconds,
// TrackAndGet returns an error that names the missing right; later calls return it without a delay until the watch has
// started. A type that the API server does not serve is not watched, and a [KindNotServedError] is returned. After
// [WatchOptional], the resource is then woken when the type is served. In a hand-written reconciler, embed the node
// with [Embed], or watch the type by hand:
//
//	bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
func (c Config) TrackAndGet(
	ctx context.Context, key types.NamespacedName, obj client.Object, opts ...client.GetOption,
) error {
	watcher, err := watcherOf(ctx)
	if err != nil {
		return fmt.Errorf("unable to track %s %s: %w", typeName(obj), key, err)
	}
	if err := c.watchTracked(ctx, obj, key.Namespace); err != nil {
		return c.untracked(ctx, obj, fmt.Sprintf("%s %s", typeName(obj), key), err)
	}
	ref := obj.DeepCopyObject().(client.Object)
	ref.SetNamespace(key.Namespace)
	ref.SetName(key.Name)
	if err := c.track(ctx, ref, watcher); err != nil {
		return err
	}
	if err = c.readerOf(ctx, obj).Get(ctx, key, obj, opts...); err != nil {
		return c.unread(ctx, obj, err)
	}
	return nil
}

// TrackAndList reads a list and tracks it: the resource of the request is reconciled again whenever an object that
// belongs to the list is created, changed or deleted. The track uses the namespace and the label selector of opts.
// Field selectors narrow the list, but not the track. The track is kept if reading fails. Outside a request, or for a
// list whose kind is not known, TrackAndList returns an error and reads nothing. The watch of the type is started as
// [Config.TrackAndGet] does.
func (c Config) TrackAndList(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.trackList(ctx, list, opts); err != nil {
		return c.untracked(ctx, list, typeName(list), err)
	}
	if err := c.readerOf(ctx, list).List(ctx, list, opts...); err != nil {
		return c.unread(ctx, list, err)
	}
	return nil
}

func (c Config) trackList(ctx context.Context, list client.ObjectList, opts []client.ListOption) error {
	watcher, err := watcherOf(ctx)
	if err != nil {
		return err
	}
	ref, err := reference.GetReference(c.Scheme(), list)
	if err != nil {
		return err
	}
	if c.Tracker == nil {
		return errNoTracker
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if err := c.watchTracked(ctx, list, options.Namespace); err != nil {
		return err
	}
	selector := options.LabelSelector
	if selector == nil {
		selector = labels.Everything()
	}
	kind := ref.GroupVersionKind()
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	if c.isClusterScoped(kind, options.Namespace) {
		options.Namespace = ""
	}
	return c.Tracker.TrackReference(tracker.Reference{
		APIGroup: kind.Group, Kind: kind.Kind, Namespace: options.Namespace, Selector: selector,
	}, watcher)
}

// isClusterScoped reports whether a kind that is asked for in a namespace has none, as far as that is known. Readers
// leave the namespace out then, and events have none.
func (c Config) isClusterScoped(kind schema.GroupVersionKind, namespace string) bool {
	if namespace == "" {
		return false
	}
	if c.namespaced != nil {
		if _, known := c.namespaced.Load(kind); known {
			return false
		}
	}
	mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && c.namespaced != nil {
		c.namespaced.Store(kind, true)
	}
	return mapping.Scope.Name() == meta.RESTScopeNameRoot
}

// track makes changes of obj wake the resource of the request. Outside a request they wake resource.
func (c Config) track(ctx context.Context, obj, resource client.Object) error {
	if c.Tracker == nil {
		return fmt.Errorf("unable to track %s: %w", describeObject(obj), errNoTracker)
	}
	watcher, err := watcherOf(ctx)
	if err != nil {
		watcher, _ = resourceBehindCast(ctx, resource)
	}
	if obj.GetNamespace() != "" && c.Client != nil {
		if kind, err := c.GroupVersionKindFor(obj); err == nil && c.isClusterScoped(kind, obj.GetNamespace()) {
			obj = obj.DeepCopyObject().(client.Object)
			obj.SetNamespace("")
		}
	}
	if err := c.Tracker.TrackObject(obj, watcher); err != nil {
		return fmt.Errorf("unable to track %s: %w", describeObject(obj), err)
	}
	return nil
}

// record records an event on obj, if the config has a recorder.
func (c Config) record(obj client.Object, eventType, reason, message string, args ...any) {
	if c.Recorder != nil {
		c.Recorder.Eventf(obj, eventType, reason, message, args...)
	}
}

var errNoTracker = errors.New("the config has no tracker")
