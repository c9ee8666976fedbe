package listing

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/few"
	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/resourcestate"

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
}

// knownLists are lists, and the nodes that count their objects as children, by the UIDs of these. Objects of several
// types have different UIDs in a cluster, but not always in tests.
type knownLists struct {
	lists  few.Map[ListKey, []client.Object]
	takers few.Map[ListKey, map[types.UID]taker]
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

// Once returns a list. If it was not asked for, list makes it.
func (l *Lists) Once(key ListKey, list func() ([]client.Object, error)) ([]client.Object, error) {
	if known, ok := l.Get(key); ok && key.Node == nil {
		return known, nil
	}
	objects, err := list()
	if err == nil {
		l.set(key, objects)
	}
	return objects, err
}

// keep returns what is known, to be changed. The caller holds the mutex.
func (l *Lists) keep() *knownLists {
	if l.known == nil {
		l.known = &knownLists{}
	}
	return l.known
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
	objects := slices.DeleteFunc(slices.Clone(known), func(obj client.Object) bool { return obj == before })
	if !deleted {
		objects = append(objects, written)
		Sort(objects)
	}
	l.set(key, objects)
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
