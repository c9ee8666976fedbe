package informer

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The errors of reads of a [Kind].
var (
	// ErrNotServed says that the cluster does not serve the kind.
	ErrNotServed = errors.New("the kind is not served")
	// ErrSyncing says that the informer of the kind is still reading.
	ErrSyncing = errors.New("the cache of the kind does not have all objects yet")
	// errNotInTime says that an informer has not synced in time.
	errNotInTime = errors.New("the informer of the kind has not synced in time")
)

// Kind is a kind that a cluster may not serve. Without a version any one counts, but a kind that is read from a cache
// has a version. Its informers are started when it is needed first, and removed when it is not served any more.
type Kind struct {
	schema.GroupVersionKind
	kinds *Kinds

	// gate is held for reading while objects are read from the cache, so that no read makes an informer for a kind that
	// is gone. It protects known and resource.
	gate sync.RWMutex
	// known reports whether it was found out whether the kind is served.
	known bool
	// resource is where it is served; empty while it is not.
	resource schema.GroupVersionResource

	// mu protects what follows. It may be taken while the gate is held, but not the other way round.
	mu        sync.Mutex
	informers map[reflect.Type]*started
	// waiting are woken when the kind can be read, and when it is not served any more. using only then.
	waiting, using map[Waiter]struct{}
	// syncing reports whether somebody waits for an informer.
	syncing bool
	// due is when it is checked next, if it is needed; zero for never. delay is the one before that check. series is
	// true if the check is made although the definitions are followed.
	due    time.Time
	delay  time.Duration
	series bool
	// expected is what ends the series: whether the kind is served. renewed reports whether a series was planned since
	// the last check began, whose answer may be older than the reason of the series.
	expected, renewed bool
}

// Waiter is who waits for a kind. It is comparable. Wake must not block.
type Waiter interface{ Wake() }

// Queued is a resource in the queue of its controller.
type Queued struct {
	Queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	Request reconcile.Request
}

// Wake implements [Waiter].
func (q Queued) Wake() { q.Queue.Add(q.Request) }

// started is an informer of a kind, for one representation.
type started struct {
	item     client.Object
	informer cache.Informer
	wait     wait
	// handlers are those that get its events, by who has added them.
	handlers map[any]toolscache.ResourceEventHandlerRegistration
}

// synced reports whether the handlers got all objects, or the informer if it has no handlers.
func (s *started) synced() bool {
	for _, added := range s.handlers {
		if !added.HasSynced() {
			return false
		}
	}
	return s.informer.HasSynced()
}

// Handler is what gets the events of a kind.
type Handler struct {
	// Key identifies the handler.
	Key any
	// Item is an object of the kind, in the representation of the events.
	Item   client.Object
	Events toolscache.ResourceEventHandler
	// Added is called when the handler was added to an informer, before that is read.
	Added func(ctx context.Context)
}

// Served reports whether the kind is served. It asks the mapper, and so perhaps the API server, at the first call.
func (k *Kind) Served() (bool, error) {
	k.gate.RLock()
	known, is := k.known, !k.resource.Empty()
	k.gate.RUnlock()
	if known {
		return is, nil
	}
	k.kinds.follow()
	k.gate.Lock()
	defer k.gate.Unlock()
	if !k.known {
		resource, err := k.kinds.first(k.GroupVersionKind)
		if err != nil {
			return false, err
		}
		k.known, k.resource = true, resource
		k.refresh()
	}
	return !k.resource.Empty(), nil
}

// whileServed calls do while the kind stays in the cache, or returns [ErrNotServed].
func (k *Kind) whileServed(do func() error) error {
	if _, err := k.Served(); err != nil {
		return err
	}
	k.gate.RLock()
	defer k.gate.RUnlock()
	if k.resource.Empty() {
		return ErrNotServed
	}
	return do()
}

func (k *Kind) isServed() bool { return !k.Resource().Empty() }

// Resource returns where the kind is served, as far as that is known. It is empty otherwise.
func (k *Kind) Resource() schema.GroupVersionResource {
	k.gate.RLock()
	defer k.gate.RUnlock()
	return k.resource
}

// Missing notes that the API server just said that it does not serve the kind.
func (k *Kind) Missing() {
	k.gate.Lock()
	defer k.gate.Unlock()
	k.known, k.resource = true, schema.GroupVersionResource{}
}

// Check asks the API server whether the kind is served.
func (k *Kind) Check(ctx context.Context) (bool, error) {
	if err := k.check(ctx); err != nil {
		return false, err
	}
	return k.Served()
}

// Doubt has the kind checked, because the API server answered that it does not serve it. It has w woken when the kind
// can be read.
func (k *Kind) Doubt(w Waiter) {
	k.kinds.follow()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.note(&k.waiting, w)
	if !k.series {
		k.renew(false)
	}
}

// note adds a waiter to a set. The lock is held.
func (k *Kind) note(to *map[Waiter]struct{}, w Waiter) {
	if w == nil {
		return
	}
	if !k.needed() {
		k.kinds.wake()
	}
	if *to == nil {
		*to = map[Waiter]struct{}{}
	}
	(*to)[w] = struct{}{}
}

// Await has w woken when the kind can be read.
func (k *Kind) Await(w Waiter) {
	k.kinds.follow()
	k.mu.Lock()
	if len(k.waiting) == 0 && !k.series {
		// The event of the definition may have come already, while the API server did not serve the kind yet.
		k.expected = true
		k.schedule(askAwaited, true)
	}
	k.note(&k.waiting, w)
	k.mu.Unlock()
	if k.isServed() {
		k.wake(false)
	}
}

// isNeeded reports whether somebody waits for the kind or uses it.
func (k *Kind) isNeeded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.needed()
}

func (k *Kind) needed() bool { return len(k.waiting)+len(k.using)+len(k.informers) > 0 }

// Forget drops what is kept of a resource that is gone.
func (k *Kind) Forget(w Waiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.waiting, w)
	delete(k.using, w)
}

// Ready returns nil if the kind can be read from the cache, and its events reach the handlers. It starts the informers.
// Otherwise it returns [ErrNotServed] or [ErrSyncing], or an error that says why an informer does not sync in time. The
// resource is woken when the kind can be read, but not after ErrNotServed, and when the kind is gone.
func (k *Kind) Ready(ctx context.Context, w Waiter, namespace string, handlers ...Handler) error {
	err := k.whileServed(func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, handler := range handlers {
			err := k.prepare(ctx, handler, namespace)
			if errors.Is(err, ErrSyncing) {
				k.note(&k.waiting, w)
			}
			if err != nil {
				return err
			}
		}
		k.note(&k.using, w)
		return nil
	})
	return k.explained(ctx, err, namespace)
}

// prepare returns nil if objects of the kind can be read in the representation of a handler, which gets the events if
// it has a key. The gate is held for reading, and the lock is held.
func (k *Kind) prepare(ctx context.Context, handler Handler, namespace string) error {
	s, err := k.start(ctx, handler.Item)
	if err != nil {
		return err
	}
	if handler.Key != nil && s.handlers[handler.Key] == nil {
		added, err := s.informer.AddEventHandler(handler.Events)
		if err != nil {
			return err
		}
		s.handlers[handler.Key] = added
		k.kinds.log.Info("watching a kind that is needed first now", "type", k.GroupVersionKind.String())
		if handler.Added != nil {
			handler.Added(ctx)
		}
	}
	if s.synced() {
		s.wait.met()
		return nil
	}
	limited, cancel := s.wait.context(ctx)
	defer cancel()
	if limited.Err() == nil || ctx.Err() != nil {
		k.syncing = true
		k.kinds.wake()
		return ErrSyncing
	}
	return errNotInTime
}

// explained returns err, or for errNotInTime an error that says why. No lock may be held, because that takes requests.
func (k *Kind) explained(ctx context.Context, err error, namespace string) error {
	if errors.Is(err, errNotInTime) {
		return notSynced(ctx, k.kinds.in, k.GroupVersionKind, namespace)
	}
	return err
}

// start returns the informer for the representation of item, and starts it if there is none. The gate is held for
// reading, and the lock is held.
func (k *Kind) start(ctx context.Context, item client.Object) (*started, error) {
	representation := reflect.TypeOf(item)
	if s := k.informers[representation]; s != nil {
		return s, nil
	}
	informer, err := k.kinds.in.GetCache().GetInformer(ctx, item, cache.BlockUntilSynced(false))
	if meta.IsNoMatchError(err) {
		// The mapper does not know it yet.
		return nil, ErrSyncing
	}
	if err != nil {
		return nil, err
	}
	s := &started{item: item, informer: informer, handlers: map[any]toolscache.ResourceEventHandlerRegistration{}}
	if k.informers == nil {
		k.informers = map[reflect.Type]*started{}
	}
	k.informers[representation] = s
	k.kinds.wake()
	return s, nil
}

// awaitsSync reports whether somebody waits for an informer. It wakes those who wait once all informers have synced, or
// have not done so in time.
func (k *Kind) awaitsSync() bool {
	k.mu.Lock()
	waits := k.syncing
	k.syncing = false
	for _, s := range k.informers {
		k.syncing = k.syncing || waits && !s.wait.over() && !s.synced()
	}
	still := k.syncing
	k.mu.Unlock()
	if waits && !still {
		k.wake(false)
	}
	return still
}

// wake wakes those who wait, and if the kind is gone those who use it.
func (k *Kind) wake(gone bool) {
	k.mu.Lock()
	waiting, using := k.waiting, map[Waiter]struct{}(nil)
	k.waiting = nil
	if gone {
		using, k.using = k.using, nil
	}
	k.mu.Unlock()
	for _, set := range []map[Waiter]struct{}{waiting, using} {
		for w := range set {
			w.Wake()
		}
	}
}

// Read reads objects of the kind in the representation of item. The function is called only if it does not wait for an
// informer. Otherwise Read returns what [Kind.Ready] returns. If item is nil, the objects are not read from the cache.
func (k *Kind) Read(ctx context.Context, item client.Object, namespace string, read func() error) error {
	err := k.whileServed(func() error {
		if item != nil {
			k.mu.Lock()
			err := k.prepare(ctx, Handler{Item: item}, namespace)
			k.mu.Unlock()
			if err != nil {
				return err
			}
		}
		return read()
	})
	return k.explained(ctx, err, namespace)
}

// check asks the API server, and acts on a change.
func (k *Kind) check(ctx context.Context) error {
	k.mu.Lock()
	k.renewed = false
	k.mu.Unlock()
	resource, err := k.kinds.ask(ctx, k.GroupVersionKind)
	var gone, came bool
	if err == nil {
		k.gate.Lock()
		before, after := !k.resource.Empty(), !resource.Empty()
		k.known, k.resource = true, resource
		gone, came = before && !after, after && !before
		if gone && !k.kinds.keeps(k.GroupVersionKind) {
			k.remove()
		}
		k.gate.Unlock()
	}
	settled := k.checked(err != nil, gone || came, !resource.Empty())
	switch {
	case gone:
		k.kinds.log.Info("a kind is not served any more", "type", k.GroupVersionKind.String())
		k.wake(true)
	case came:
		k.kinds.log.Info("a kind is served now", "type", k.GroupVersionKind.String())
		k.wake(false)
	case settled && !resource.Empty():
		// They were told that it is not served.
		k.wake(false)
	}
	return err
}

// Delays of checks.
const (
	// The API server serves a type, and says so, some time after its definition says it. So there is a series of checks
	// after an event of a definition, with delays that double from the first to the last.
	firstOfSeries, lastOfSeries = 100 * time.Millisecond, 3200 * time.Millisecond
	// once is the delay of a single check.
	once = lastOfSeries + 1
	// askAwaited is the first delay before a check of a kind that somebody waits for, and maxAwaited the longest.
	askAwaited, maxAwaited = time.Second, 30 * time.Second
	// pollServed is the delay between checks of a kind that is served.
	pollServed = 5 * time.Minute
)

// schedule has the kind checked after a delay. The lock is held.
func (k *Kind) schedule(delay time.Duration, series bool) {
	k.due, k.delay, k.series = time.Now().Add(delay), delay, series
	k.kinds.wake()
}

// renew plans a series of checks, which ends early when the kind is served as expected. The lock is held.
func (k *Kind) renew(expected bool) {
	k.expected, k.renewed = expected, true
	k.schedule(0, true)
}

// checked plans the next check after one. It returns true if the answer is final, as far as events tell.
func (k *Kind) checked(failed, changed, served bool) (settled bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := max(2*k.delay, firstOfSeries)
	switch {
	case k.renewed:
		return false
	// What changed may be from an earlier event than the last one.
	case failed, k.series && !(changed && served == k.expected) && k.delay < lastOfSeries:
		k.schedule(min(next, maxAwaited), true)
		return false
	case served:
		k.schedule(pollServed, false)
	case changed, k.delay == once:
		k.schedule(askAwaited, false)
	default:
		k.schedule(min(next, maxAwaited), false)
	}
	return true
}

// remove removes the informers from the cache. The gate is held.
func (k *Kind) remove() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.informers {
		if err := k.kinds.in.GetCache().RemoveInformer(context.Background(), s.item); err != nil {
			k.kinds.log.Error(err, "unable to remove an informer", "type", k.GroupVersionKind.String())
		}
	}
	k.informers = nil
}

// next returns when the kind is to be checked, and false for never.
func (k *Kind) next(followed bool) (time.Time, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.due, !k.due.IsZero() && k.needed() && (k.series || !followed)
}

// defined notes that the definition of the kind may have changed. Stays is false if it is deleted.
func (k *Kind) defined(stays bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renew(stays)
}

// refresh has the kind checked once.
func (k *Kind) refresh() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.series {
		k.renew(false)
		k.delay = once
	}
}
