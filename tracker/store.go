package tracker

import (
	"container/list"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// watcherKey identifies a watcher.
type watcherKey struct {
	controller string
	kind       schema.GroupKind
	name       types.NamespacedName
}

// topicKey identifies what can be watched: a Reference within a cluster, with its selector replaced by something that
// can be compared. The type of the selector is part of it, because labels.Nothing() and labels.Everything() print
// alike.
type topicKey struct {
	cluster      any
	kind         schema.GroupKind
	namespace    string
	name         string
	selector     string
	selectorType reflect.Type
}

// topic is an object or a selection of objects, with its watchers.
//
// Invariant: a topic of the store has at least one watcher.
type topic struct {
	key      topicKey
	selector labels.Selector
	// buckets are where the index keeps a topic that has a selector.
	buckets  []bucketKey
	watchers map[*watcher]*interest
}

// watcher is a resource with its interests.
//
// Invariant: a watcher of the store has at least one interest or an open round.
type watcher struct {
	key       watcherKey
	interests map[*topic]*interest
	// round counts the rounds that began. It is 0 only before the first.
	round int64
	// open is true from the beginning of a round to its end.
	open bool
	// since is the oldest round that counts as part of the open one. When a round ends complete, interests that were
	// last confirmed before it are dropped.
	since int64
}

// interest is one watcher's interest in one topic.
type interest struct {
	watcher *watcher
	topic   *topic
	// round is the round of the watcher that last confirmed the interest; 0 if none ever did.
	round int64
	// expires is when the lease ends, and leased the place in the queue of leases. Both are unset for an interest
	// without a lease.
	expires time.Time
	leased  *list.Element
}

// store is what all views of a Tracker share.
type store struct {
	lease time.Duration
	// now is the clock of leases. Only tests replace it.
	now func() time.Time

	mu       sync.Mutex
	topics   map[topicKey]*topic
	index    index
	watchers map[watcherKey]*watcher
	// leases holds the interests that have a lease, the first to expire in front. As all leases have one length, those
	// renewed go to the back.
	leases list.List
	// interests is the number of pairs of watcher and topic.
	interests int
}

func newStore(lease time.Duration) *store {
	return &store{
		lease:    lease,
		now:      time.Now,
		topics:   map[topicKey]*topic{},
		index:    index{},
		watchers: map[watcherKey]*watcher{},
	}
}

// track makes the watcher interested in ref.
func (s *store) track(by watcherKey, cluster any, ref Reference) error {
	key := keyOf(cluster, ref)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()

	t, ok := s.topics[key]
	if !ok {
		// A reference that is already known has passed validation before.
		if err := ref.validate(); err != nil {
			return err
		}
		t = s.addTopic(key, ref.Selector)
	}
	s.confirm(s.watcher(by), t)
	return nil
}

// observers calls yield with each watcher of a topic that covers the object with the name in ref and the labels in set.
// It may call yield several times for one watcher.
func (s *store) observers(cluster any, ref Reference, set labels.Set, yield func(watcherKey)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()

	key := keyOf(cluster, ref)
	if t, ok := s.topics[key]; ok {
		t.each(yield)
	}
	s.index.plausible(key, set, func(t *topic) {
		if t.selector.Matches(set) {
			t.each(yield)
		}
	})
}

func (t *topic) each(yield func(watcherKey)) {
	for w := range t.watchers {
		yield(w.key)
	}
}

func (s *store) size() Size {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	return Size{Watchers: len(s.watchers), References: s.interests}
}

func keyOf(cluster any, ref Reference) topicKey {
	key := topicKey{
		cluster:   cluster,
		kind:      schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind},
		namespace: ref.Namespace,
		name:      ref.Name,
	}
	if ref.Selector != nil {
		key.selector = ref.Selector.String()
		key.selectorType = reflect.TypeOf(ref.Selector)
	}
	return key
}

func (s *store) addTopic(key topicKey, selector labels.Selector) *topic {
	t := &topic{key: key, watchers: map[*watcher]*interest{}}
	if selector != nil {
		t.selector = selector
		s.index.add(t)
	}
	s.topics[key] = t
	return t
}

func (s *store) watcher(key watcherKey) *watcher {
	w, ok := s.watchers[key]
	if !ok {
		w = &watcher{key: key, interests: map[*topic]*interest{}}
		s.watchers[key] = w
	}
	return w
}

// confirm records that w is interested in t now.
func (s *store) confirm(w *watcher, t *topic) {
	i, ok := w.interests[t]
	if !ok {
		i = &interest{watcher: w, topic: t}
		w.interests[t] = i
		t.watchers[w] = i
		s.interests++
	}
	switch {
	case w.open:
		i.round = w.round
		s.endLease(i)
	case i.round > 0:
		// It lasts until a round ends without it; a lease would only shorten that.
	default:
		s.renewLease(i)
	}
}

// drop removes an interest, and its topic if it has no other watcher. The caller releases the watcher.
func (s *store) drop(i *interest) {
	s.endLease(i)
	s.interests--
	delete(i.watcher.interests, i.topic)
	delete(i.topic.watchers, i.watcher)
	if len(i.topic.watchers) == 0 {
		delete(s.topics, i.topic.key)
		s.index.remove(i.topic)
	}
}

// release removes a watcher that has nothing left.
func (s *store) release(w *watcher) {
	if len(w.interests) == 0 && !w.open {
		delete(s.watchers, w.key)
	}
}
