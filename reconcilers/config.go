package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/tracker"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Config is what a tree works with: the clients of one cluster, and who is told about what. It is comparable, and
// copied by value.
//
// [NewConfig] makes one for the manager's cluster. One made by hand works too, for a controller that exists already or
// for a test: what it leaves out is not there for the nodes to use, and children are then looked up by listing the
// namespace, not by an index.
type Config struct {
	// Client reads through the manager's cache and writes to the API server. It understands duck types.
	client.Client
	// APIReader reads from the API server, past the cache.
	APIReader client.Reader
	// Discovery tells what the API server offers.
	Discovery discovery.DiscoveryInterface
	// Recorder records the events that this toolkit emits, with the API of before events.k8s.io.
	Recorder record.EventRecorder
	// EventRecorder records events with the API of events.k8s.io, for nodes that want it.
	events.EventRecorder
	// Tracker remembers which resource wants to hear about which object.
	Tracker tracker.Tracker

	syncPeriod time.Duration
	// cluster is the one that Client reads, and that tracks of Tracker mean; nil in a config made by hand.
	cluster cluster.Cluster
	// owners finds children by their owner; nil where no index can be had.
	owners *ownerIndex
}

// NewConfig returns the config for the manager's own cluster. apiType is not used; it stays for compatibility.
// syncPeriod is that of the manager's cache; it bounds how long a track lives that was made outside a root reconciler.
func NewConfig(mgr Manager, apiType client.Object, syncPeriod time.Duration) Config {
	return Config{syncPeriod: syncPeriod}.WithCluster(mgr).WithTracker()
}

// IsEmpty tells whether c is the zero value.
func (c Config) IsEmpty() bool {
	return c == Config{}
}

// WithCluster returns a config for another cluster. The tracker is shared with c, so what it tracks wakes the same
// controller, but a track made with the new config means an object of the new cluster.
//
// It panics if no discovery client can be made of the cluster's REST config, which is a mistake in the program.
func (c Config) WithCluster(other cluster.Cluster) Config {
	c.Client = duck.NewDuckAwareClientWrapper(other.GetClient())
	c.APIReader = duck.NewDuckAwareAPIReaderWrapper(other.GetAPIReader(), other.GetClient())
	c.Discovery = discovery.NewDiscoveryClientForConfigOrDie(other.GetConfig())
	//lint:ignore SA1019 compatible trees record events with the API of before events.k8s.io
	c.Recorder = other.GetEventRecorderFor("controller")
	c.EventRecorder = other.GetEventRecorder("controller")
	c.cluster = other
	c.owners = newOwnerIndex(other.GetFieldIndexer())
	if c.Tracker != nil {
		c.Tracker = tracker.InCluster(c.Tracker, other)
	}
	return c
}

// Cluster returns the cluster that Client reads and writes. It is nil for a config that was not made by [NewConfig] or
// [Config.WithCluster].
func (c Config) Cluster() cluster.Cluster {
	return c.cluster
}

// WithTracker returns a config with a tracker of its own, and all else kept.
func (c Config) WithTracker() Config {
	c.Tracker = tracker.New(c.Scheme(), 2*c.syncPeriod)
	if c.cluster != nil {
		c.Tracker = tracker.InCluster(c.Tracker, c.cluster)
	}
	return c
}

// WithDangerousDuckClientOperations returns a config whose client also creates and updates duck-typed objects, and all
// else kept. It is dangerous since whatever the duck type does not cover is lost in an update.
func (c Config) WithDangerousDuckClientOperations() Config {
	c.Client = duck.NewDangerousDuckAwareClientWrapper(c.Client)
	return c
}

// TrackAndGet reads an object and has the resource of the request woken whenever that object changes, or comes into
// being: the track stands also when the object is not found. Outside a request, or for an object that cannot be
// tracked, it returns an error and reads nothing.
func (c Config) TrackAndGet(
	ctx context.Context, key types.NamespacedName, obj client.Object, opts ...client.GetOption,
) error {
	watcher, err := watcherOf(ctx)
	if err != nil {
		return fmt.Errorf("unable to track %s %s: %w", typeName(obj), key, err)
	}
	ref := obj.DeepCopyObject().(client.Object)
	ref.SetNamespace(key.Namespace)
	ref.SetName(key.Name)
	if err := c.track(ctx, ref, watcher); err != nil {
		return err
	}
	return c.Get(ctx, key, obj, opts...)
}

// TrackAndList reads a list and has the resource of the request woken whenever an object changes that the list would
// have, or comes into being. The track is made from the namespace and the label selector of opts; field selectors
// narrow the list but not the track. It stands also when the list fails. Outside a request, or for a list whose kind is
// not known, it returns an error and reads nothing.
func (c Config) TrackAndList(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	watcher, err := watcherOf(ctx)
	if err != nil {
		return fmt.Errorf("unable to track %s: %w", typeName(list), err)
	}
	ref, err := listReference(c, list, opts)
	if err != nil {
		return fmt.Errorf("unable to track %s: %w", typeName(list), err)
	}
	if c.Tracker == nil {
		return fmt.Errorf("unable to track %s: %w", typeName(list), errNoTracker)
	}
	if err := c.Tracker.TrackReference(ref, watcher); err != nil {
		return fmt.Errorf("unable to track %s: %w", typeName(list), err)
	}
	return c.List(ctx, list, opts...)
}

func listReference(c Config, list client.ObjectList, opts []client.ListOption) (tracker.Reference, error) {
	ref, err := reference.GetReference(c.Scheme(), list)
	if err != nil {
		return tracker.Reference{}, err
	}
	options := (&client.ListOptions{}).ApplyOptions(opts)
	selector := options.LabelSelector
	if selector == nil {
		selector = labels.Everything()
	}
	return tracker.Reference{
		APIGroup:  ref.GroupVersionKind().Group,
		Kind:      strings.TrimSuffix(ref.Kind, "List"),
		Namespace: options.Namespace,
		Selector:  selector,
	}, nil
}

// track has the resource of the request woken whenever obj changes. Outside a request that is resource itself.
func (c Config) track(ctx context.Context, obj, resource client.Object) error {
	if c.Tracker == nil {
		return fmt.Errorf("unable to track %s: %w", describeObject(obj), errNoTracker)
	}
	watcher, err := watcherOf(ctx)
	if err != nil {
		watcher, _ = resourceBehindCast(ctx, resource)
	}
	if err := c.Tracker.TrackObject(obj, watcher); err != nil {
		return fmt.Errorf("unable to track %s: %w", describeObject(obj), err)
	}
	return nil
}

// record records an event on obj. A config made by hand may have no recorder: the events are then not wanted.
func (c Config) record(obj client.Object, eventType, reason, message string, args ...any) {
	if c.Recorder != nil {
		c.Recorder.Eventf(obj, eventType, reason, message, args...)
	}
}

var (
	errNoTracker      = errors.New("the config has no tracker")
	errNoResourceType = errors.New("there is no resource on the context to wake. " +
		"Check that the context is from a ResourceReconciler")
)

// wokenType returns an object of the type that is woken: that of the root, whatever type the nodes see it as.
func wokenType(ctx context.Context) (client.Object, error) {
	s := contextOf(ctx)
	switch {
	case !isNil(s.originalResourceType):
		return s.originalResourceType, nil
	case !isNil(s.resourceType):
		return s.resourceType, nil
	default:
		return nil, errNoResourceType
	}
}

// watcherOf returns an object that stands for the resource of the request, as the one to wake.
func watcherOf(ctx context.Context) (client.Object, error) {
	woken, err := wokenType(ctx)
	if err != nil {
		return nil, err
	}
	request := contextOf(ctx).request
	if request.Name == "" {
		return nil, errNoResourceType
	}
	watcher := woken.DeepCopyObject().(client.Object)
	watcher.SetNamespace(request.Namespace)
	watcher.SetName(request.Name)
	return watcher, nil
}
