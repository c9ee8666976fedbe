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
)

// Kind is a kind that a cluster may not serve. Its informers are started when it is needed first, and removed when it
// is not served any more.
type Kind struct {
	schema.GroupVersionKind
	kinds *Kinds

	// gate is held for reading while objects are read from the cache, so that no read makes an informer for a kind that
	// is gone. It protects state and resource.
	gate  sync.RWMutex
	state state
	// resource is the name of its resource, while it is served.
	resource string

	// mu protects what follows. It may be taken while the gate is held, but not the other way round.
	mu        sync.Mutex
	informers map[reflect.Type]*started
	// waiting are woken when the kind can be read, and when it is not served any more. using only then.
	waiting, using map[Waiter]struct{}
	// last is the time of the last check, fresh is false if one is due, checks counts those since an event of the
	// definition, if event is true, or since somebody waits.
	last   time.Time
	fresh  bool
	event  bool
	checks int
}

type state int

const (
	unknown state = iota
	served
	unserved
)

// Waiter is a resource in the queue of its controller.
type Waiter struct {
	Queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	Request reconcile.Request
}

// started is an informer of a kind, for one representation.
type started struct {
	item     client.Object
	informer cache.Informer
	wait     wait
	// handlers are those that get its events, by who has added them.
	handlers map[any]toolscache.ResourceEventHandlerRegistration
	// stop ends with the informer.
	stop    context.Context
	stopped context.CancelFunc
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
	known := k.state
	k.gate.RUnlock()
	if known != unknown {
		return known == served, nil
	}
	k.kinds.follow()
	k.gate.Lock()
	defer k.gate.Unlock()
	if k.state == unknown {
		resource, err := k.kinds.first(k.GroupVersionKind)
		if err != nil {
			return false, err
		}
		k.setState(resource)
		k.kinds.wake()
	}
	return k.state == served, nil
}

// setState notes where the kind is served. The gate is held.
func (k *Kind) setState(resource string) {
	k.state, k.resource = unserved, resource
	if resource != "" {
		k.state = served
	}
}

// Check asks the API server whether the kind is served.
func (k *Kind) Check() (bool, error) {
	err := k.check()
	if err != nil {
		return false, err
	}
	return k.Served()
}

// Doubt has the kind checked, because the API server answered that it does not serve it.
func (k *Kind) Doubt(w Waiter) {
	k.mu.Lock()
	k.note(&k.waiting, w)
	if !k.event {
		k.last, k.event, k.checks = time.Now(), true, 0
	}
	k.mu.Unlock()
	k.kinds.wake()
}

// note adds a waiter to a set.
func (k *Kind) note(to *map[Waiter]struct{}, w Waiter) {
	if w.Queue == nil {
		return
	}
	if *to == nil {
		*to = map[Waiter]struct{}{}
	}
	(*to)[w] = struct{}{}
}

// Await has a resource woken when the kind can be read.
func (k *Kind) Await(w Waiter) {
	k.mu.Lock()
	first := len(k.waiting) == 0
	k.note(&k.waiting, w)
	if first && !k.event {
		k.checks = 0
	}
	k.mu.Unlock()
	k.gate.RLock()
	is := k.state == served
	k.gate.RUnlock()
	switch {
	case is:
		k.wake(false)
	case first:
		k.kinds.wake()
	}
}

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
	if is, err := k.Served(); err != nil || !is {
		return errors.Join(err, notServedUnless(err))
	}
	k.gate.RLock()
	defer k.gate.RUnlock()
	if k.state != served {
		return ErrNotServed
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, handler := range handlers {
		s, err := k.start(ctx, handler.Item)
		if err != nil {
			return err
		}
		if s.handlers[handler.Key] == nil {
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
		if err := k.readable(ctx, s, namespace); err != nil {
			if errors.Is(err, ErrSyncing) {
				k.note(&k.waiting, w)
			}
			return err
		}
	}
	k.note(&k.using, w)
	return nil
}

func notServedUnless(err error) error {
	if err != nil {
		return nil
	}
	return ErrNotServed
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
	s.stop, s.stopped = context.WithCancel(context.Background())
	if k.informers == nil {
		k.informers = map[reflect.Type]*started{}
	}
	k.informers[representation] = s
	k.kinds.spawn(func(run context.Context) { k.wakeSynced(run, s) })
	return s, nil
}

// readable returns nil if an informer has synced. The lock is held.
func (k *Kind) readable(ctx context.Context, s *started, namespace string) error {
	if s.synced() {
		return nil
	}
	limited, cancel := s.wait.context(ctx)
	defer cancel()
	if limited.Err() == nil || ctx.Err() != nil {
		return ErrSyncing
	}
	return notSynced(ctx, k.kinds.in, k.GroupVersionKind, namespace)
}

// wakeSynced wakes those who wait for an informer when it has synced, or when it has not done so in time.
func (k *Kind) wakeSynced(run context.Context, s *started) {
	limited, cancel := s.wait.context(run)
	defer cancel()
	synced := func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return s.stop.Err() != nil || s.synced()
	}
	toolscache.WaitForCacheSync(limited.Done(), synced)
	if run.Err() == nil && s.stop.Err() == nil {
		k.wake(false)
	}
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
			w.Queue.Add(w.Request)
		}
	}
}

// Read reads objects of the kind in the representation of item. The function is called only if it does not wait for an
// informer. Otherwise Read returns what [Kind.Ready] returns. If item is nil, the objects are not read from the cache.
func (k *Kind) Read(ctx context.Context, item client.Object, namespace string, read func() error) error {
	if is, err := k.Served(); err != nil || !is {
		return errors.Join(err, notServedUnless(err))
	}
	k.gate.RLock()
	defer k.gate.RUnlock()
	if k.state != served {
		return ErrNotServed
	}
	if item != nil {
		if err := k.prepare(ctx, item, namespace); err != nil {
			return err
		}
	}
	return read()
}

func (k *Kind) prepare(ctx context.Context, item client.Object, namespace string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, err := k.start(ctx, item)
	if err != nil {
		return err
	}
	return k.readable(ctx, s, namespace)
}

// check asks the API server, and acts on a change.
func (k *Kind) check() error {
	resource, err := k.kinds.ask(k.GroupVersionKind)
	var gone, came bool
	if err == nil {
		k.gate.Lock()
		before := k.state
		k.setState(resource)
		gone, came = k.state == unserved && before == served, k.state == served && before != served
		if gone && !anyKeeps(k.kinds.in, k.GroupVersionKind) {
			k.remove()
		}
		k.gate.Unlock()
	}
	settled := k.checked(err != nil, gone || came)
	switch {
	case gone:
		k.kinds.log.Info("a kind is not served any more", "type", k.GroupVersionKind.String())
		k.wake(true)
	case came:
		k.kinds.log.Info("a kind is served now", "type", k.GroupVersionKind.String())
		k.wake(false)
	case settled && resource != "":
		// They were told that it is not served.
		k.wake(false)
	}
	return err
}

// checked notes a check. It returns true if it was the last one after an event.
func (k *Kind) checked(failed, changed bool) (settled bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.fresh = time.Now(), true
	k.checks++
	switch {
	case failed:
		// There is no answer yet.
		k.event, k.checks = true, min(k.checks, len(afterEvent)-1)
	case changed:
		k.event, k.checks = false, 0
	case k.event && k.checks >= len(afterEvent):
		k.event, k.checks = false, 0
		return true
	}
	return false
}

// remove removes the informers from the cache. The gate is held.
func (k *Kind) remove() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.informers {
		s.stopped()
		if err := k.kinds.in.GetCache().RemoveInformer(context.Background(), s.item); err != nil {
			k.kinds.log.Error(err, "unable to remove an informer", "type", k.GroupVersionKind.String())
		}
	}
	k.informers = nil
}

// due returns when the kind is to be checked, and false for never.
func (k *Kind) due(followed bool) (time.Time, bool) {
	k.gate.RLock()
	state := k.state
	k.gate.RUnlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case state == unknown:
		return time.Time{}, false
	case !k.fresh && k.last.IsZero():
		return time.Time{}, true
	case !k.fresh && !k.event:
		return k.last, true
	}
	delay, ok := next(state == served, len(k.waiting) > 0, followed, k.checks, k.event)
	return k.last.Add(delay), ok
}

// checkIfDue checks the kind if it is time.
func (k *Kind) checkIfDue(now time.Time, followed bool) {
	if at, due := k.due(followed); due && !at.After(now) {
		_ = k.check() // An error is followed by another check.
	}
}

// defined notes that the definition of the kind may have changed.
func (k *Kind) defined() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.event, k.checks = time.Now(), true, 0
}

// refresh has the kind checked once.
func (k *Kind) refresh() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fresh = false
}
