package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/informer"
	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/internal/served"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// StatusReasonKindNotServed is the API reason of a [KindNotServedError].
const StatusReasonKindNotServed metav1.StatusReason = "KindNotServed"

// KindNotServedError says that the cluster does not serve a kind. It says nothing about objects: an object that is not
// found is another error. It unwraps to a [meta.NoKindMatchError].
type KindNotServedError struct {
	Kind schema.GroupVersionKind
}

var _ interface{ Status() metav1.Status } = (*KindNotServedError)(nil)

func (e *KindNotServedError) Error() string {
	return fmt.Sprintf("the cluster does not serve %s of %s: install its CustomResourceDefinition, "+
		"or the API server that serves it", e.Kind.Kind, e.Kind.GroupVersion())
}

// Status returns a status with the reason [StatusReasonKindNotServed].
func (e *KindNotServedError) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Reason: StatusReasonKindNotServed, Message: e.Error(),
		Details: &metav1.StatusDetails{Group: e.Kind.Group, Kind: e.Kind.Kind},
	}
}

func (e *KindNotServedError) Unwrap() error {
	return &meta.NoKindMatchError{GroupKind: e.Kind.GroupKind(), SearchedVersions: []string{e.Kind.Version}}
}

// isKindNotServed reports whether err contains a [KindNotServedError].
func isKindNotServed(err error) bool {
	var found *KindNotServedError
	return errors.As(err, &found)
}

// errKindSyncing is returned while the informer of a kind reads its objects. The resource is woken when it has them.
var errKindSyncing = fmt.Errorf("%w: %w", informer.ErrSyncing, ErrQuiet)

// explainKind returns the error for a read of a kind that cannot be read.
func explainKind(gvk schema.GroupVersionKind, err error) error {
	switch {
	case errors.Is(err, informer.ErrNotServed):
		return &KindNotServedError{Kind: gvk}
	case errors.Is(err, informer.ErrSyncing):
		return errKindSyncing
	}
	return fmt.Errorf("unable to read %s: %w", gvk.Kind, err)
}

// WatchOptional is [WatchTracked] for a type that the cluster may not serve. Such a type keeps the manager neither from
// starting nor from running. It is watched when it is tracked first, by [Config.TrackAndGet] or [Config.TrackAndList],
// which return a [KindNotServedError] while it is not served. They return a quiet error while its cache is filled,
// instead of waiting for it. In both cases the resource of the request is woken when the type can be read. If the type
// is removed from the cluster, its objects leave the cache, and the resources that read them are woken. A type of
// Kubernetes itself that each supported cluster serves is watched at set-up.
//
// The cluster of each [Config] is followed separately. What defines types, CustomResourceDefinitions and APIServices,
// is watched if the role allows it. Otherwise the API server is asked: every 30 seconds at the latest while a resource
// waits, and every 5 minutes for a type that is in use. The watch of a type that is removed may be shared only by nodes
// below roots: a hand-written controller that watches it in the same manager loses its watch.
//
// Unstructured and duck types are read from the cache then, as other types are, by [Config.TrackAndGet],
// [Config.TrackAndList] and the nodes with children, unless the client of the config was replaced.
//
// In a set-up without a root, a type is watched if it is served at that time.
func WatchOptional(ctx context.Context, bldr *Builder, obj client.Object) error {
	return watchTracked(ctx, bldr, obj, true)
}

// introducedLast is the release of Kubernetes up to which kinds count as served by each cluster.
var introducedLast = [2]int{1, 28}

// isCertain reports whether each cluster serves a kind: a stable one of Kubernetes itself that is not new.
func isCertain(gvk schema.GroupVersionKind) bool {
	if strings.Contains(gvk.Version, "alpha") || strings.Contains(gvk.Version, "beta") {
		return false
	}
	obj, err := clientgoscheme.Scheme.New(gvk)
	if err != nil {
		return false
	}
	known, ok := obj.(interface{ APILifecycleIntroduced() (major, minor int) })
	if !ok {
		return true
	}
	major, minor := known.APILifecycleIntroduced()
	return major < introducedLast[0] || major == introducedLast[0] && minor <= introducedLast[1]
}

// optionalKind is a kind in a cluster, which is nil for the manager's.
type optionalKind struct {
	in   cluster.Cluster
	kind schema.GroupVersionKind
}

// lateWatch is a kind that is watched when it is needed first.
type lateWatch struct {
	*informer.Kind
	// fans get the events, one for each representation.
	fans []*fanOut
}

func (l *lateWatch) handlers(tracked *informer.Tracked) []informer.Handler {
	var handlers []informer.Handler
	for _, fan := range l.fans {
		if fan.late == nil {
			continue
		}
		handlers = append(handlers, informer.Handler{
			Key: fan, Item: fan.late, Events: tracked.EventsFor(fan), Added: func(ctx context.Context) {
				for _, renew := range fan.renew {
					renew(ctx)
				}
			},
		})
	}
	return handlers
}

// watchLate makes a fan late, so that the type is watched when it is needed first, unless the type is to be watched at
// set-up.
func watchLate(ctx context.Context, config Config, obj client.Object, fan *fanOut) error {
	gvk, err := config.GroupVersionKindFor(obj)
	if err != nil || isCertain(gvk) {
		return err
	}
	s := contextOf(ctx)
	in := s.otherCluster(config)
	if s.watches == nil || s.watches.mgr == nil {
		// No controller is known that could start the watch later.
		if _, err := config.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); meta.IsNoMatchError(err) {
			fan.late = obj
		}
		return nil
	}
	at := optionalKind{in, gvk}
	known := s.watches.optional[at]
	if known == nil {
		if in == nil {
			in = s.watches.mgr
		}
		kinds, err := informer.KindsOf(in, logr.FromContextOrDiscard(ctx), config.Discovery)
		if err == nil {
			err = kinds.RunWith(s.watches.mgr)
		}
		if err != nil {
			return fmt.Errorf("unable to follow which kinds the cluster serves: %w", err)
		}
		known = &lateWatch{Kind: kinds.Of(gvk)}
		s.watches.optional[at] = known
	}
	fan.late = obj
	known.fans = append(known.fans, fan)
	return nil
}

// keepWatched notes that a type is watched at set-up, so that its informer stays in the cache.
func keepWatched(ctx context.Context, config Config, obj client.Object) {
	s := contextOf(ctx)
	if s.watches == nil || gotype.IsNil(obj) {
		return
	}
	s.watches.tracked.Keep(s.otherCluster(config), kindOf(config.Client, obj))
}

// renewIndex has the index by owner added again to each new informer of a type that is watched late.
func renewIndex(ctx context.Context, config Config, t listing.Type) {
	s := contextOf(ctx)
	if s.watches == nil {
		return
	}
	known := s.watches.optional[optionalKind{s.otherCluster(config), t.Kind}]
	if known == nil {
		return
	}
	for _, fan := range known.fans {
		if reflect.TypeOf(fan.late) == reflect.TypeOf(t.Watched) {
			fan.renew = append(fan.renew, func(ctx context.Context) { config.owners.Renew(ctx, t) })
		}
	}
}

// forget drops what is kept of a resource that is gone.
func (w *watches) forget(req Request) {
	if w == nil || len(w.optional) == 0 {
		return
	}
	_, queue := w.tracked.Queue()
	for _, known := range w.optional {
		known.Forget(informer.Queued{Queue: queue, Request: req})
	}
}

// syncingWake is after which time a request is repeated that found a cache without all objects, if the cache does not
// wake the resource before.
const syncingWake = 5 * time.Second

// optionalWatch returns the watch of an optional kind, or nil if a kind is not optional or is watched at set-up.
func (s *treeContext) optionalWatch(config Config, gvk schema.GroupVersionKind) *lateWatch {
	if s.watches == nil || len(s.watches.optional) == 0 {
		return nil
	}
	known := s.watches.optional[optionalKind{s.otherCluster(config), gvk}]
	if known == nil || !slices.ContainsFunc(known.fans, func(fan *fanOut) bool { return fan.late != nil }) {
		return nil
	}
	return known
}

// waiter returns the resource of the request in the queue of the controller. It is nil if the controller does not run.
func (s *treeContext) waiter() informer.Waiter {
	_, queue := s.watches.tracked.Queue()
	if queue == nil {
		return nil
	}
	return informer.Queued{Queue: queue, Request: s.request}
}

// readerOf returns who reads obj, an object or a list. A type without a Go type, which the client reads past the cache,
// is read from the cache if it is watched as an optional kind, unless the author has replaced the client.
func (c Config) readerOf(ctx context.Context, obj runtime.Object) client.Reader {
	s := contextOf(ctx)
	isOwn := c.cached != nil && s.comparable && c.Client == c.own
	if !isOwn || s.watches == nil || len(s.watches.untyped) == 0 || !isUntyped(obj, c.Scheme()) {
		return c.Client
	}
	gvk, err := c.itemKind(obj)
	if err != nil || !s.watches.untyped[optionalKind{s.otherCluster(c), gvk}] {
		return c.Client
	}
	return c.cached
}

// isUntyped reports whether an informer shows obj, an object or a list, as an unstructured object.
func isUntyped(obj runtime.Object, scheme *runtime.Scheme) bool {
	_, untyped := obj.(runtime.Unstructured)
	return untyped || duck.IsDuck(obj, scheme)
}

// readyKind returns nil if objects of a kind can be read, and events wake the resource. It starts the watch of an
// optional kind. Otherwise it returns a [KindNotServedError], or [errKindSyncing], of which the resource is woken.
func (c Config) readyKind(ctx context.Context, gvk schema.GroupVersionKind, namespace string) error {
	s := contextOf(ctx)
	watch := s.optionalWatch(c, gvk)
	if watch == nil {
		return nil
	}
	var err error
	if w := s.waiter(); w != nil {
		err = watch.Ready(ctx, w, namespace, watch.handlers(s.watches.tracked)...)
	} else if is, unknown := watch.Served(); unknown != nil || !is {
		err = cmp.Or(unknown, informer.ErrNotServed)
	}
	if err != nil {
		err = explainKind(gvk, err)
	}
	if errors.Is(err, errKindSyncing) {
		s.state.wakeAfter(syncingWake)
	}
	return err
}

// awaitKind has the resource woken when a kind is served.
func (c Config) awaitKind(ctx context.Context, gvk schema.GroupVersionKind) {
	s := contextOf(ctx)
	if watch := s.optionalWatch(c, gvk); watch != nil {
		watch.Await(s.waiter())
		return
	}
	// No event tells it.
	s.state.wantRetry()
}

// refusedKind returns the error for an answer of the API server which says that it does not serve the kind: then that
// is found out. Any other error is returned unchanged.
func (c Config) refusedKind(ctx context.Context, gvk schema.GroupVersionKind, err error) error {
	if !served.IsNotServed(err) || isKindNotServed(err) {
		return err
	}
	s := contextOf(ctx)
	if watch := s.optionalWatch(c, gvk); watch != nil {
		watch.Doubt(s.waiter())
	}
	return &KindNotServedError{Kind: gvk}
}

// untracked returns the error for an object or a list, called name, that could not be tracked. If its kind is not
// served, the resource is woken when it is.
func (c Config) untracked(ctx context.Context, obj runtime.Object, name string, err error) error {
	if errors.Is(err, errKindSyncing) {
		return err
	}
	if isKindNotServed(err) {
		return c.unread(ctx, obj, err)
	}
	return fmt.Errorf("unable to track %s: %w", name, err)
}

// unread returns the error for an object or a list that could not be read. If its kind is not served, the resource is
// woken when it is.
func (c Config) unread(ctx context.Context, obj runtime.Object, err error) error {
	gvk, unknown := c.itemKind(obj)
	if unknown != nil {
		return err
	}
	if contextOf(ctx).optionalWatch(c, gvk) != nil || meta.IsNoMatchError(err) {
		err = c.refusedKind(ctx, gvk, err)
	}
	if watch := contextOf(ctx).optionalWatch(c, gvk); watch != nil && isKindNotServed(err) {
		watch.Await(contextOf(ctx).waiter())
	}
	return err
}

// itemKind returns the kind of obj, or of the items if it is a list.
func (c Config) itemKind(obj runtime.Object) (schema.GroupVersionKind, error) {
	gvk, err := c.GroupVersionKindFor(obj)
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk, err
}
