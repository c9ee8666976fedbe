package tracker

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	_ Tracker       = view{}
	_ Rounds        = view{}
	_ KindObservers = view{}
	_ Views         = view{}
	_ Sizer         = view{}
)

// view is the Tracker of one cluster and one controller. All views of a Tracker share its store.
type view struct {
	store      *store
	scheme     *runtime.Scheme
	cluster    any
	controller string
}

func (v view) TrackReference(ref Reference, obj client.Object) error {
	if obj == nil {
		return errors.New("unable to track: there is no watcher")
	}
	s, by, key := v.store, v.watcherKey(obj), topicKeyOf(v.cluster, ref)
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

func (v view) TrackObject(ref client.Object, obj client.Object) error {
	r, err := v.reference(ref)
	if err != nil {
		return err
	}
	return v.TrackReference(r, obj)
}

func (v view) GetObservers(obj client.Object) ([]types.NamespacedName, error) {
	return v.observers(obj, func(watcherKey) bool { return true })
}

func (v view) ObserversOfKind(obj client.Object, watcher schema.GroupKind) ([]types.NamespacedName, error) {
	return v.observers(obj, func(key watcherKey) bool { return key.kind == watcher || key.kind.Empty() })
}

func (v view) observers(obj client.Object, wanted func(watcherKey) bool) ([]types.NamespacedName, error) {
	ref, err := v.reference(obj)
	if err != nil {
		return nil, err
	}
	names := []types.NamespacedName{}
	v.store.visit(topicKeyOf(v.cluster, ref), obj.GetLabels(), func(t *topic) {
		for w := range t.watchers {
			mine := v.controller == "" || w.key.controller == "" || w.key.controller == v.controller
			if mine && wanted(w.key) {
				names = append(names, w.key.name)
			}
		}
	})
	slices.SortFunc(names, func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(names), nil
}

func (v view) BeginRound(obj client.Object) {
	if obj == nil {
		return
	}
	s := v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watcher(v.watcherKey(obj))
	w.round++
	if !w.open {
		w.since = w.round
	}
	w.open = true
}

func (v view) EndRound(obj client.Object, complete bool) {
	v.end(obj, func(w *watcher, i *interest) bool { return complete && w.open && i.round < w.since })
}

func (v view) Forget(obj client.Object) {
	v.end(obj, func(*watcher, *interest) bool { return true })
}

// end ends the round of obj, if it has one open, and drops the interests for which gone returns true.
func (v view) end(obj client.Object, gone func(*watcher, *interest) bool) {
	if obj == nil {
		return
	}
	s := v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.watchers[v.watcherKey(obj)]
	if !ok {
		return
	}
	for _, i := range w.interests {
		if gone(w, i) {
			s.drop(i)
		}
	}
	w.open = false
	s.release(w)
}

func (v view) InCluster(cluster any) Tracker {
	if cluster != nil && !reflect.ValueOf(cluster).Comparable() {
		panic(fmt.Errorf("tracker.InCluster: a %T cannot identify a cluster, it is not comparable", cluster))
	}
	v.cluster = cluster
	return v
}

func (v view) ForController(name string) Tracker {
	v.controller = name
	return v
}

func (v view) Size() Size {
	s := v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	return Size{Watchers: len(s.watchers), References: s.interests}
}

func (v view) Kinds() map[schema.GroupKind]int {
	s := v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	kinds := map[schema.GroupKind]int{}
	for key, topic := range s.topics {
		kinds[key.kind] += len(topic.watchers)
	}
	return kinds
}

// reference returns the Reference to obj itself.
func (v view) reference(obj client.Object) (Reference, error) {
	ref, err := reference.GetReference(v.scheme, obj)
	if err != nil {
		return Reference{}, err
	}
	group := ref.GroupVersionKind().Group
	return Reference{APIGroup: group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}, nil
}

// watcherKey identifies obj as a watcher. If its kind is not known, the kind is left empty: the watcher is still woken,
// but is not distinguished from a watcher of another kind with the same name.
func (v view) watcherKey(obj client.Object) watcherKey {
	key := watcherKey{controller: v.controller, name: client.ObjectKeyFromObject(obj)}
	if gvk := obj.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
		key.kind = gvk.GroupKind()
	} else if v.scheme != nil {
		if gvks, _, err := v.scheme.ObjectKinds(obj); err == nil && len(gvks) > 0 {
			key.kind = gvks[0].GroupKind()
		}
	}
	return key
}

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

// visit calls do with each topic that covers the object with that key and those labels.
func (s *store) visit(key topicKey, set labels.Set, do func(*topic)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if t, ok := s.topics[key]; ok {
		do(t)
	}
	s.index.plausible(key, set, func(t *topic) {
		if t.selector.Matches(set) {
			do(t)
		}
	})
}

func topicKeyOf(cluster any, ref Reference) topicKey {
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

// renewLease lets an interest expire one lease from now.
func (s *store) renewLease(i *interest) {
	if s.lease <= 0 {
		return
	}
	i.expires = s.now().Add(s.lease)
	if i.leased == nil {
		i.leased = s.leases.PushBack(i)
	} else {
		s.leases.MoveToBack(i.leased)
	}
}

// endLease lets an interest last until it is dropped.
func (s *store) endLease(i *interest) {
	if i.leased != nil {
		s.leases.Remove(i.leased)
		i.leased = nil
	}
}

// expire drops all interests whose lease has ended. Every access to the store begins with it, so that an expired
// interest is freed even if there is never again an event for its object. Each interest is dropped once.
func (s *store) expire() {
	if s.leases.Len() == 0 {
		return
	}
	now := s.now()
	for front := s.leases.Front(); front != nil; front = s.leases.Front() {
		i, ok := front.Value.(*interest)
		if !ok || !now.After(i.expires) {
			return
		}
		s.drop(i)
		s.release(i.watcher)
	}
}
