package reconcilers

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/digest"
	rtime "github.com/espalier-dev/espalier/time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// family is the children of one type that one resource owns, as the resource's nodes know them. It lives in the memory of
// the resource and saves what an idle reconcile spends most on:
//
//   - the cache is asked once in a request, whatever the number of nodes with children of the type, and only for references:
//     an object is copied out of it when its version is new, so that no node ever holds an object of the cache;
//   - what a node has just written or deleted is known before the cache shows it. A cache that lags behind our own write is
//     not believed: nothing is created twice, deleted again, or updated from an older state on its word.
type family struct {
	mu      sync.Mutex
	members map[memberKey]*member
	// round counts the refreshes, swept is the round of the last sweep, and idle counts the sweeps since the last refresh.
	round, swept uint64
	idle         int
	// sorted are the objects of the members by namespace and name; nil if it has to be made again. It is not changed once made.
	sorted []client.Object
}

// memberKey identifies a child: by UID, and by name only where there is none, as in tests.
type memberKey struct {
	uid  types.UID
	name types.NamespacedName
}

func memberKeyOf(obj client.Object) memberKey {
	if uid := obj.GetUID(); uid != "" {
		return memberKey{uid: uid}
	}
	return memberKey{name: client.ObjectKeyFromObject(obj)}
}

// member is a child as last seen or written, whichever is newer.
type member struct {
	object client.Object
	// digest is that of object when it was taken in. The object is handed to the author's functions, which may change it, or let the
	// resource share what it refers to: it then does not count any more.
	digest uint64
	intact bool
	// unseen is true from our write until the cache shows the child for the first time.
	unseen bool
	// deleted is true once we deleted the child, until the cache shows so.
	deleted bool
	// written is when we wrote or deleted it last; zero if never.
	written time.Time
	// round is when the cache last showed the child.
	round uint64
}

// take makes object what is known of the child.
func (m *member) take(object client.Object) {
	m.object = object
	m.digest, m.intact = digest.Of(object)
}

// trusted tells whether the object is as it was taken in.
func (m *member) trusted() bool {
	if !m.intact {
		return false
	}
	now, ok := digest.Of(m.object)
	return ok && now == m.digest
}

// familyKey tells families apart: the same type in another cluster is another family, and so are the children that a node finds
// in a way of its own.
type familyKey struct {
	reader client.Client
	listed reflect.Type
	kind   schema.GroupVersionKind
	// node is nil for the children that the resource controls, which nodes share.
	node any
}

func familyOf(config Config, list client.ObjectList, node any) familyKey {
	return familyKey{reader: config.Client, listed: reflect.TypeOf(list), kind: list.GetObjectKind().GroupVersionKind(), node: node}
}

// familyReader reads the children of a family from the cache.
type familyReader func(opts ...client.ListOption) ([]client.Object, error)

// remembersChildren tells whether there is a memory to keep families in: below a root, with a client that can be told from
// others.
func remembersChildren(ctx context.Context) bool {
	s := scopeOf(ctx)
	return s.pass != nil && s.pass.memory != nil && s.comparable
}

// knownChildren returns the children that were listed in this request before, and false if they were not.
//
// The objects are copies that belong to the resource's nodes; they are for reading, and may be handed out again as long as
// they do not change.
func knownChildren(ctx context.Context, key familyKey) ([]client.Object, bool) {
	f := familyInUse(ctx, key)
	if f == nil {
		return nil, false
	}
	return f.children(), true
}

// listChildren returns the children that read finds, as [knownChildren] does, which it makes them.
func listChildren(ctx context.Context, config Config, key familyKey, sample client.Object, read familyReader) ([]client.Object, error) {
	p := scopeOf(ctx).pass
	f := recall(p.memory, key, func() *family { return &family{members: map[memberKey]*member{}} })
	if err := f.refresh(ctx, config, sample, read); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.families == nil {
		p.families = map[familyKey]*family{}
	}
	p.families[key] = f
	return f.children(), nil
}

// knowChild tells the family of a child what a node has written: before is what was there, and written what the server
// answered, nil if the child was deleted.
func knowChild(ctx context.Context, key familyKey, before, written client.Object) {
	f := familyInUse(ctx, key)
	switch {
	case f == nil:
	case isNil(written):
		f.deleted(before, rtime.RetrieveNow(ctx))
	default:
		f.wrote(written, rtime.RetrieveNow(ctx))
	}
}

// familyInUse returns the family if it was refreshed in this request.
func familyInUse(ctx context.Context, key familyKey) *family {
	p := scopeOf(ctx).pass
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.families[key]
}

func (f *family) wrote(object client.Object, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := memberKeyOf(object)
	m, ok := f.members[key]
	switch {
	case !ok:
		m = &member{unseen: true}
		f.members[key] = m
	case m.object == object:
		return
	}
	m.take(object)
	m.written = now
	f.sorted = nil
}

func (f *family) deleted(object client.Object, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := f.members[memberKeyOf(object)]; ok {
		m.deleted, m.written = true, now
		f.sorted = nil
	}
}

var _ sweeper = (*family)(nil)

// sweep tells whether the family is still asked for.
func (f *family) sweep() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle++
	if f.round != f.swept {
		f.swept, f.idle = f.round, 0
	}
	return f.idle <= patience
}

// children returns the members, sorted by namespace and name.
func (f *family) children() []client.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sorted == nil {
		f.sorted = make([]client.Object, 0, len(f.members))
		for _, m := range f.members {
			if !m.deleted {
				f.sorted = append(f.sorted, m.object)
			}
		}
		sortObjects(f.sorted)
	}
	return f.sorted
}

// refresh brings the members up to date with the cache, and with the API server where the cache lags behind our own writes.
func (f *family) refresh(ctx context.Context, config Config, sample client.Object, read familyReader) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	listed, err := read(client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	now := rtime.RetrieveNow(ctx)
	kind := kindOf(config.Client, sample)
	f.round++
	for _, obj := range listed {
		f.see(obj, kind, now)
	}
	for key, m := range f.members {
		if m.round == f.round {
			continue
		}
		f.sorted = nil
		if !m.unseen || m.deleted {
			delete(f.members, key)
			continue
		}
		alive, err := confirm(ctx, config, m, now)
		if err != nil {
			return err
		}
		if alive == nil {
			delete(f.members, key)
			continue
		}
		m.take(alive)
	}
	return nil
}

// see takes note of what the cache has. Its object is copied, unless what is known is the same or newer.
func (f *family) see(cached client.Object, kind schema.GroupVersionKind, now time.Time) {
	key := memberKeyOf(cached)
	m, ok := f.members[key]
	if !ok {
		m = &member{}
		f.members[key] = m
	}
	m.unseen = false
	m.round = f.round
	if m.deleted {
		if cached.GetDeletionTimestamp() == nil && now.Sub(m.written) <= barrierLimit {
			// The cache has not heard of the deletion yet.
			return
		}
		m.deleted, m.object = false, nil
	}
	if m.object != nil && m.trusted() &&
		(m.object.GetResourceVersion() == cached.GetResourceVersion() || lags(cached, m.object, m.written, now)) {
		return
	}
	object := cached.DeepCopyObject().(client.Object)
	if carried := object.GetObjectKind(); carried.GroupVersionKind().Empty() {
		// The cache tells the kind of its copies only.
		carried.SetGroupVersionKind(kind)
	}
	m.take(object)
	f.sorted = nil
}

// confirm reads a child that we wrote and the cache does not show: it may not have arrived yet, or be gone already. It
// returns nil for a child that is gone. Without a way to ask, the child counts as there for as long as a cache may lag.
func confirm(ctx context.Context, config Config, m *member, now time.Time) (client.Object, error) {
	if config.APIReader == nil {
		if now.Sub(m.written) <= barrierLimit {
			return m.object, nil
		}
		return nil, nil
	}
	alive := m.object.DeepCopyObject().(client.Object)
	err := config.APIReader.Get(ctx, client.ObjectKeyFromObject(m.object), alive)
	if apierrs.IsNotFound(err) || err == nil && alive.GetUID() != m.object.GetUID() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return alive, nil
}
