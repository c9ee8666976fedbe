package observe

import (
	"context"
	"errors"
	"time"

	"github.com/espalier-dev/espalier/internal/informer"
	"github.com/espalier-dev/espalier/internal/kinds"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// phase is how objects of a type are known.
type phase int

const (
	// unresolved means that it is not known yet whether the API server serves the type.
	unresolved phase = iota
	// starting means that the watch has not shown yet what there is.
	starting
	// live means that the watch shows the objects. What it showed last still counts while it is interrupted.
	live
	// polled means that there is no watch; objects are read by name.
	polled
	// missing means that the API server does not serve the type.
	missing
)

// watchedType is what is known of one type. It is guarded by the lock of the [Watching].
//
//	from        to         when
//	unresolved  starting   an Observe finds where the type is served (resolve)
//	unresolved  polled     an Observe cannot find that out
//	any         missing    the API server does not serve the type (lost)
//	missing     starting   its definition is established (define), or the API server says that it serves the type
//	                       (awaitServed)
//	any         live       the watch has shown what there is, and is open (setLive)
//	any         polled     the watch fails (unwatchable): at once, or maxFailures times if it was live before or if
//	                       there was no answer; never if it was live before and there is no answer
type watchedType struct {
	schema.GroupKind
	phase phase
	// reason says why it is polled.
	reason string
	// resource is where it is served; empty if not known.
	resource schema.GroupVersionResource
	// doubted reports whether the API server answered that the resource is not served there.
	doubted bool
	// lag is how often it may still answer so without being doubted, since its definition said that it is served.
	lag int
	// slots are the objects that the watch shows or that a component is interested in.
	slots map[types.NamespacedName]*slot
	// users are the components with interest in the type, with the number of their objects.
	users map[*componentState]int
	// progress is the resource version up to which the watch has shown everything.
	progress string
	// listed reports whether the watch has shown what there is. stream is the open watch; nil while there is none. Both
	// make a working watch.
	listed bool
	stream *stream
	// wasLive reports whether it was live since it was last missing.
	wasLive bool
	// failures counts attempts to watch since a watch last worked.
	failures int
	// signal wakes the goroutine that waits until the type is not missing any more, or until it may watch again.
	signal chan struct{}
	// stop ends the goroutine; nil if there is none. stopped: no component is interested any more.
	stop    context.CancelFunc
	stopped bool
	// unlistable are namespaces in which the type may not be listed.
	unlistable map[string]bool
}

// slot is the place of one object.
type slot struct {
	// shown is what the watch shows; nil if it shows nothing.
	shown *snapshot
	// entries are the interests in the object, seldom more than one.
	entries []*entry
}

// slotOf returns the slot of an object, and makes it if there is none.
func (t *watchedType) slotOf(name types.NamespacedName) *slot {
	at := t.slots[name]
	if at == nil {
		at = &slot{}
		t.slots[name] = at
	}
	return at
}

// dropEmpty drops a slot that has no content.
func (t *watchedType) dropEmpty(name types.NamespacedName) {
	if at := t.slots[name]; at != nil && at.shown == nil && len(at.entries) == 0 {
		delete(t.slots, name)
	}
}

var _ informer.Waiter = (*watchedType)(nil)

// pause waits for a delay. It returns earlier if ctx is done, and if something new is known of where to watch.
func (t *watchedType) pause(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-t.signal:
	}
}

// Wake implements [informer.Waiter]. It lets the goroutine go on that waits.
func (t *watchedType) Wake() {
	select {
	case t.signal <- struct{}{}:
	default:
	}
}

// notifyUsers notifies all components with interest in the type that its phase has changed.
func (t *watchedType) notifyUsers(wake *wakeups) {
	for s := range t.users {
		s.notify(nil, wake)
	}
}

// appear handles that the type is served, if it was missing. lag is how often an API server may not know that yet.
func (t *watchedType) appear(at schema.GroupVersionResource, lag int, wake *wakeups) {
	if t.phase == missing {
		t.phase, t.resource, t.lag = starting, at, lag
		t.Wake()
		t.notifyUsers(wake)
	}
}

// show stores what the watch shows of an object from a resource version on; nil stands for no object.
func (t *watchedType) show(name types.NamespacedName, shown *snapshot, version string, wake *wakeups) {
	at := t.slotOf(name)
	old := at.shown
	at.shown = shown
	for _, e := range at.entries {
		if e.onEvent(old, shown, version) {
			e.state.notify(e, wake)
		}
	}
	t.dropEmpty(name)
}

// reflectorStore receives the events of the watch of a type.
type reflectorStore struct {
	informer.Events
	watching *Watching
	typ      *watchedType
}

var (
	_ cache.TransformingStore      = (*reflectorStore)(nil)
	_ cache.ResourceVersionUpdater = (*reflectorStore)(nil)
)

func (w *Watching) storeOf(t *watchedType) *reflectorStore {
	s := &reflectorStore{watching: w, typ: t}
	s.Events = informer.Events{Replaced: s.replace, Shown: s.event}
	return s
}

// watchedObject is what is kept of an object on its way from the API server to a slot.
type watchedObject struct {
	name     types.NamespacedName
	snapshot *snapshot
}

// transform replaces an object by what is kept of it.
func (s *reflectorStore) transform(object any) (any, error) {
	switch o := object.(type) {
	case *watchedObject:
		return o, nil
	case metav1.Object:
		seen := s.watching.extractor.snapshot(o)
		if s.typ.GroupKind == kinds.Job {
			seen.ending = endingOf(o)
		}
		name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
		return &watchedObject{name: name, snapshot: seen}, nil
	}
	return nil, errNoMetadata
}

var errNoMetadata = errors.New("an object without metadata")

// Transformer lets client-go keep as little of an object as the store does.
func (s *reflectorStore) Transformer() cache.TransformFunc { return s.transform }

func (s *reflectorStore) event(object any, deleted bool) error {
	transformed, err := s.transform(object)
	if err != nil {
		return err
	}
	o := transformed.(*watchedObject)
	shown := o.snapshot
	if deleted {
		shown = nil
	}
	s.apply(func(wake *wakeups) {
		if deleted {
			s.typ.keepLast(o.name, o.snapshot)
		}
		s.typ.show(o.name, shown, o.snapshot.version, wake)
	})
	return nil
}

func (s *reflectorStore) replace(objects []any, version string) error {
	all := make(map[types.NamespacedName]*snapshot, len(objects))
	for _, object := range objects {
		transformed, err := s.transform(object)
		if err != nil {
			return err
		}
		o := transformed.(*watchedObject)
		all[o.name] = o.snapshot
	}
	s.apply(func(wake *wakeups) {
		s.typ.progress, s.typ.listed = version, true
		for name := range s.typ.slots {
			// A list also refutes a response that says that an object exists.
			if all[name] == nil {
				s.typ.show(name, nil, version, wake)
			}
		}
		for name, shown := range all {
			s.typ.show(name, shown, shown.version, wake)
		}
		s.watching.setLive(s.typ, wake)
	})
	return nil
}

// apply changes the type, unless its watch has ended. News is not urgent before the type was live.
func (s *reflectorStore) apply(change func(wake *wakeups)) {
	s.watching.locked(func(wake *wakeups) {
		if s.typ.stopped {
			return
		}
		wake.low = !s.typ.wasLive
		change(wake)
	})
}

// UpdateResourceVersion implements [cache.ResourceVersionUpdater].
func (s *reflectorStore) UpdateResourceVersion(version string) {
	s.watching.mu.Lock()
	defer s.watching.mu.Unlock()
	s.typ.progress = version
}
