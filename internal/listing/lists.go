package listing

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/digest"
	"github.com/espalier-dev/espalier/internal/few"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/statusfield"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lists are the lists of objects that the nodes of one request asked for: what the cache shows, corrected by what the
// controller wrote and the cache does not show yet. The nodes share the lists, so that the cache is asked once for each
// type. The objects are copies that belong to the request, sorted, see [Sort]. A list is replaced and never changed.
// The zero value is ready for use, also concurrently.
type Lists struct {
	mu sync.Mutex
	// known is nil until a list was asked for.
	known *knownLists
	// labelled are the objects of lists by the value of a label, as far as they were asked for by it.
	labelled map[ListKey]map[string][]client.Object
	// asking has a place for each list that is being asked for, so that branches ask once.
	asking map[ListKey]chan struct{}

	// outer are the lists that these are a branch of; nil for none. Writes are those of the branch.
	outer  *Lists
	writes []listWrite
}

// knownLists are lists, and the nodes that count their objects as children, by the UIDs of these. Objects of several
// types have different UIDs in a cluster, but not always in tests.
type knownLists struct {
	lists  few.Map[ListKey, []client.Object]
	takers few.Map[ListKey, map[types.UID]taker]
}

// listWrite is a write of an object of a list, see [Lists.Wrote].
type listWrite struct {
	key             ListKey
	before, written client.Object
}

// ListKey identifies a list. The same type in another cluster is another list. A node with list options has a list of
// its own.
type ListKey struct {
	Reader client.Client
	Listed reflect.Type
	Kind   schema.GroupVersionKind
	// Node is nil for the objects that the resource controls. Nodes share these.
	Node any
}

// Get returns a list, and false if it was not asked for.
func (l *Lists) Get(key ListKey) ([]client.Object, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		return nil, false
	}
	return l.known.lists.Get(key)
}

// Branch has l be the lists of one of several branches that run at the same time. It begins with those of outer, which
// nobody else uses until all branches have ended. A list that a branch asks for is the same one for all, as it was when
// the first one asked. What a branch writes only it knows, until [Lists.Merge].
func (l *Lists) Branch(outer *Lists) {
	outer.mu.Lock()
	defer outer.mu.Unlock()
	l.outer = outer
	if outer.known != nil {
		l.known = &knownLists{lists: outer.known.lists.Clone()}
	}
}

// IsBranch reports whether other nodes run at the same time.
func (l *Lists) IsBranch() bool { return l.outer != nil }

// Merge adds what a branch has written, and the lists that only one node asks for.
func (l *Lists) Merge(branch *Lists) {
	for key, list := range branch.all() {
		if key.Node != nil {
			l.set(key, list)
		}
	}
	for _, write := range branch.writes {
		if known, ok := l.Get(write.key); ok {
			l.wrote(write, known)
		}
	}
}

// Once returns a list. If it was not asked for, list makes it. Branches wait for the first that asks.
func (l *Lists) Once(
	ctx context.Context, key ListKey, list func() ([]client.Object, error),
) ([]client.Object, error) {
	if known, ok := l.Get(key); ok && key.Node == nil {
		return known, nil
	}
	if l.outer != nil && key.Node == nil {
		end, err := l.outer.Turn(ctx, key)
		if err != nil {
			return nil, err
		}
		defer end()
		known, err := l.outer.Once(ctx, key, list)
		if err == nil {
			l.set(key, known)
		}
		return known, err
	}
	objects, err := list()
	if err == nil {
		l.set(key, objects)
	}
	return objects, err
}

// Turn waits until no other branch asks for a list, or until ctx ends. The caller calls end when it has asked.
func (l *Lists) Turn(ctx context.Context, key ListKey) (end func(), err error) {
	place := l.placeToAsk(key)
	select {
	case place <- struct{}{}:
		return func() { <-place }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// placeToAsk returns a channel that has room for one that asks for a list.
func (l *Lists) placeToAsk(key ListKey) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	place, ok := l.asking[key]
	if !ok {
		place = make(chan struct{}, 1)
		if l.asking == nil {
			l.asking = map[ListKey]chan struct{}{}
		}
		l.asking[key] = place
	}
	return place
}

// keep returns what is known, to be changed. The caller holds the mutex.
func (l *Lists) keep() *knownLists {
	if l.known == nil {
		l.known = &knownLists{}
	}
	return l.known
}

// all returns all lists. The caller holds the mutex, or nobody else uses them.
func (l *Lists) all() iter.Seq2[ListKey, []client.Object] {
	if l.known == nil {
		return func(func(ListKey, []client.Object) bool) {}
	}
	return l.known.lists.All()
}

func (l *Lists) set(key ListKey, list []client.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep().lists.Put(key, list)
	delete(l.labelled, key)
}

// Labelled returns the objects of a list whose label has that value. The label is the same one in all calls.
func (l *Lists) Labelled(key ListKey, label, value string) []client.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.labelled[key]
	if !ok {
		known = map[string][]client.Object{}
		objects, _ := l.keep().lists.Get(key)
		for _, obj := range objects {
			has := obj.GetLabels()[label]
			known[has] = append(known[has], obj)
		}
		if l.labelled == nil {
			l.labelled = map[ListKey]map[string][]client.Object{}
		}
		l.labelled[key] = known
	}
	return known[value]
}

// Believe returns what is believed of the objects that the cache shows, by the writes in memory. Shown has
// references into the cache, sorted. The API server is asked through reader, which may be nil, for what was created and
// is not shown. An object without a kind gets kind, because a cache sets the kind only on its copies.
func Believe(
	ctx context.Context, memory *resourcestate.State, reader client.Reader, now time.Time,
	key ListKey, kind schema.GroupVersionKind, shown []client.Object,
) ([]client.Object, error) {
	writes, _ := resourcestate.Load[*resourcestate.OwnWrites](memory, key)
	objects, err := believed(ctx, writes, reader, shown, now)
	if err != nil {
		return nil, err
	}
	for _, obj := range objects {
		if carried := obj.GetObjectKind(); carried.GroupVersionKind().Empty() {
			carried.SetGroupVersionKind(kind)
		}
	}
	return objects, nil
}

// believed returns what is believed of the objects that the cache shows, as sorted copies. Without writes that is what
// the cache shows.
func believed(
	ctx context.Context, writes *resourcestate.OwnWrites, reader client.Reader, shown []client.Object, now time.Time,
) ([]client.Object, error) {
	objects := make([]client.Object, 0, len(shown))
	for _, cached := range shown {
		obj := cached
		if writes != nil {
			obj = writes.Resolve(cached, now)
		}
		if obj == nil {
			continue
		}
		if obj == cached {
			obj = cached.DeepCopyObject().(client.Object)
		}
		objects = append(objects, obj)
	}
	if writes == nil {
		return objects, nil
	}
	unseen, err := writes.Unseen(ctx, reader, shown, now)
	if err != nil {
		return nil, err
	}
	if len(unseen) > 0 {
		objects = append(objects, unseen...)
		Sort(objects)
	}
	return objects, nil
}

// Wrote notes in a list and in memory that an object was written: before is the object as it was read, and written the
// answer, nil if the object was deleted. Created is true if there was no object before. A list that nobody asked for
// stays unknown.
func (l *Lists) Wrote(
	memory *resourcestate.State, now time.Time, key ListKey, before, written client.Object, created bool,
) {
	deleted := gotype.IsNil(written)
	if deleted && created || !deleted && !created && resourcestate.SameVersion(written, before) {
		return
	}
	known, ok := l.Get(key)
	if !ok {
		return
	}
	writes := resourcestate.LoadOrNew[resourcestate.OwnWrites](memory, key)
	if deleted {
		writes.Deleted(before, now)
	} else {
		// The functions of the author get the object, and may change it.
		writes.Wrote(written.DeepCopyObject().(client.Object), created, now)
	}
	l.wrote(listWrite{key, before, written}, known)
}

// wrote replaces a list by one in which an object is as it was written.
func (l *Lists) wrote(write listWrite, known []client.Object) {
	objects := slices.DeleteFunc(slices.Clone(known), func(obj client.Object) bool { return obj == write.before })
	if !gotype.IsNil(write.written) {
		objects = append(objects, write.written)
		Sort(objects)
	}
	l.set(write.key, objects)
	if l.outer != nil {
		l.writes = append(l.writes, write)
	}
}

// Inputs returns the digest of the status of all listed objects that have one, except for the one with that UID. What
// others write changes the status. What the controller writes does not.
func (l *Lists) Inputs(except types.UID) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum uint64
	for _, objects := range l.all() {
		for _, obj := range objects {
			if status := statusfield.Of(obj); obj.GetUID() != except && status.Exists() {
				one, _ := digest.Of([]any{obj.GetUID(), status.Get()})
				// The order of lists does not count.
				sum += one
			}
		}
	}
	return sum
}

// taker is the node that counts an object as its child.
type taker struct {
	node any
	at   fmt.Stringer
}

// Take notes that a node, which runs at that path, counts an object as its child. If another node does so already, it
// returns the path of that node and changes nothing. An object without a UID is not noted.
func (l *Lists) Take(key ListKey, obj client.Object, node any, at fmt.Stringer) (other fmt.Stringer) {
	uid := obj.GetUID()
	if uid == "" {
		return nil
	}
	if l.outer != nil {
		return l.outer.Take(key, obj, node, at)
	}
	key.Node = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	takers, _ := l.keep().takers.Get(key)
	if known, ok := takers[uid]; ok {
		if known.node != node {
			return known.at
		}
		return nil
	}
	if takers == nil {
		takers = map[types.UID]taker{}
		l.known.takers.Put(key, takers)
	}
	takers[uid] = taker{node: node, at: at}
	return nil
}
