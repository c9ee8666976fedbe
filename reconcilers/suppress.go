package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/gotype"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SuppressTransientErrors hides the first errors in a row of a node, because many errors disappear after a retry.
//
//   - Runs: the nested node.
//   - Stops: never on its own.
//   - On error: until the nested node has failed Threshold times in a row, returns its result, and its error joined
//     with [ErrQuiet] and [ErrSkipStatusUpdate]. The root then retries, does not write the status, and logs and records
//     nothing. From then on the error is returned unchanged. An [ErrDurable] and a panic are always returned
//     unchanged.
//   - On deletion: the same.
//
// Errors are counted per resource. A request without an error, an ErrDurable, and a new generation of the resource
// reset the count to zero. An [ErrHaltSubReconcilers] counts as an error.
//
// Below a root the count is dropped when the resource is gone. In a node that a hand-written reconciler calls, the node
// lists the resources once in 24 hours, and drops the counts of resources that are gone.
type SuppressTransientErrors[Type client.Object, ListType client.ObjectList] struct {
	// Name identifies the node in paths and logs. Default: SuppressTransientErrors.
	Name string

	// ListType is a list of Type. The node uses it to find out which resources are gone. Default: an empty ListType.
	ListType ListType

	// Setup adds watches and indexes, after those of the nested node. Optional.
	Setup func(ctx context.Context, mgr Manager, bldr *Builder) error

	// Threshold is the number of the first error in a row that is returned unchanged. Default: 3, so two are
	// suppressed.
	Threshold uint8

	// Reconciler is the nested node. Required.
	Reconciler SubReconciler[Type]

	initOnce sync.Once
	counts   ResourceState[*errorCount]

	// purging is locked during a purge, and guards purged, the time of the last purge or of the first request.
	purging sync.Mutex
	purged  time.Time
}

var _ SubReconciler[client.Object] = (*SuppressTransientErrors[client.Object, client.ObjectList])(nil)

// purgeInterval is how long the counter of a deleted resource may stay.
const purgeInterval = 24 * time.Hour

func (r *SuppressTransientErrors[T, LT]) init() {
	r.initOnce.Do(func() {
		r.ListType = defaultType(r.ListType)
		r.Name = cmp.Or(r.Name, "SuppressTransientErrors")
		r.Threshold = cmp.Or(r.Threshold, 3)
	})
}

// SetupWithManager validates, then sets up the nested node and the node itself.
func (r *SuppressTransientErrors[T, LT]) SetupWithManager(ctx context.Context, mgr Manager, bldr *Builder) error {
	r.init()
	return setUpNode(ctx, mgr, bldr, r, r.Name, setUpOf(r.Reconciler), r.Setup)
}

// Validate checks that the required fields are set and, if recursive, the nested node.
func (r *SuppressTransientErrors[T, LT]) Validate(ctx context.Context) error {
	r.init()
	if err := r.check(); err != nil {
		return err
	}
	return validateField(ctx, "SuppressTransientErrors", r.Name, "Reconciler", r.Reconciler)
}

func (r *SuppressTransientErrors[T, LT]) check() error {
	if gotype.IsNil(r.Reconciler) {
		return fmt.Errorf("SuppressTransientErrors %q must implement Reconciler", r.Name)
	}
	if gotype.IsNil(r.ListType) {
		return fmt.Errorf("SuppressTransientErrors %q must define ListType since none can be made of %s",
			r.Name, reflect.TypeFor[LT]())
	}
	return nil
}

// Reconcile runs the nested node, see [SuppressTransientErrors].
func (r *SuppressTransientErrors[T, LT]) Reconcile(ctx context.Context, resource T) (Result, error) {
	r.init()
	if err := r.check(); err != nil {
		return Result{}, err
	}
	ctx = Enter(ctx, r.Name)
	count := r.counts.Of(ctx, resource, func() *errorCount { return &errorCount{} })
	if stateOf(ctx) == nil {
		defer r.purgeIfDue(ctx, resource)
	}

	result, err := ReconcileNested(ctx, r.Reconciler, resource)
	if err == nil || errors.Is(err, ErrDurable) || isPanic(err) {
		count.reset()
		return result, err
	}
	if count.add(resource.GetGeneration()) < r.Threshold {
		return result, errors.Join(err, ErrSkipStatusUpdate, ErrQuiet)
	}
	return result, err
}

// purgeIfDue drops the counters of deleted resources, if the last purge was long ago. If it fails, the request does not
// fail, and the next request tries again.
func (r *SuppressTransientErrors[T, LT]) purgeIfDue(ctx context.Context, resource T) {
	// One request at a time purges.
	if !r.purging.TryLock() {
		return
	}
	defer r.purging.Unlock()
	now := rtime.RetrieveNow(ctx)
	if r.purged.IsZero() {
		r.purged = now
	}
	if now.Before(r.purged.Add(purgeInterval)) {
		return
	}
	log := logr.FromContextOrDiscard(ctx)
	log.V(detailed).Info("purging stale resource counters")
	// These are read before the list. A resource that is created later has no counter among them, although the list may
	// lack it.
	stale := sets.New(r.counts.standaloneUIDs()...)
	existing, err := r.existingUIDs(ctx, resource)
	if err != nil {
		log.Error(err, "purge failed to list resources")
		return
	}
	for uid := range stale.Difference(existing) {
		log.V(detailed).Info("purging counter", "id", uid)
		r.counts.Forget(uid)
	}
	r.purged = now
}

// existingUIDs returns the UIDs of all existing resources.
func (r *SuppressTransientErrors[T, LT]) existingUIDs(ctx context.Context, resource T) (sets.Set[types.UID], error) {
	config, err := RetrieveConfig(ctx)
	if err != nil {
		return nil, err
	}
	reader, list := r.listSource(ctx, config, resource)
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	existing := sets.New[types.UID]()
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			existing.Insert(obj.GetUID())
		}
		return nil
	})
	return existing, err
}

// listSource returns the reader and the list for listing the resources. Resources of a Go type that the scheme knows
// are in the cache, because the root watches them. Ducks, unstructured objects and cast objects may not be in the
// cache, so their metadata is listed from the API server.
func (r *SuppressTransientErrors[T, LT]) listSource(
	ctx context.Context, config Config, resource T,
) (client.Reader, client.ObjectList) {
	list := r.ListType.DeepCopyObject().(client.ObjectList)
	_, unstructured := any(list).(runtime.Unstructured)
	_, cast := resourceBehindCast(ctx, resource)
	kind := kindOfOriginal(ctx, resource)
	if kind.Empty() || !unstructured && !cast && !duck.IsDuck(list, config.Scheme()) {
		return config, list
	}
	metadata := &metav1.PartialObjectMetadataList{}
	metadata.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if config.APIReader == nil {
		return config, metadata
	}
	return config.APIReader, metadata
}

// errorCount counts the errors in a row of one resource at one generation. The zero value is ready for use, also
// concurrently.
type errorCount struct {
	mu         sync.Mutex
	generation int64
	errors     uint8
}

// add counts an error and returns the number of errors in a row at the generation, 255 at most.
func (c *errorCount) add(generation int64) uint8 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != generation {
		c.generation, c.errors = generation, 0
	}
	if c.errors < math.MaxUint8 {
		c.errors++
	}
	return c.errors
}

func (c *errorCount) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors = 0
}

// Describe shows the nested node.
func (r *SuppressTransientErrors[T, LT]) Describe() Description {
	r.init()
	return Description{
		Kind:   "SuppressTransientErrors",
		Name:   r.Name,
		Detail: fmt.Sprintf("up to %d", r.Threshold-1),
		Nodes:  []Description{Describe(r.Reconciler)},
	}
}
