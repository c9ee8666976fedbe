package reconcilers

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/gotype"
	"github.com/espalier-dev/espalier/internal/listing"
	"github.com/espalier-dev/espalier/internal/resourcestate"
	"github.com/espalier-dev/espalier/internal/shard"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// existing are the children of one list of a resource that are known to exist, whether or not the cache shows them. A
// cache that has the objects of the shard alone does not show a child that the ring has given to another shard, as it
// does before the resource itself moves and after.
//
// A request believes the cache if it shows all of them. Otherwise the API server is asked: for a resource that is new
// to the shard, after a create whose outcome is not known, and while a child is hidden. A child is created only after
// the API server was asked in the same request.
//
// Without a shard, a resource has this only from a create of a generated name whose outcome is not known until the
// cache shows what that has created: with another name, the API server would refuse to create it twice.
type existing struct {
	// ofShard is true if the cache has the objects of the shard alone.
	ofShard bool

	mu sync.Mutex
	// complete is true while no child can exist that is not in uids.
	complete bool
	uids     map[types.UID]bool
	// asked is true once the API server was asked.
	asked bool
	// areShown is true if the cache has shown all of them.
	areShown bool
}

// existingLists have the children of a resource that are known to exist, by their lists.
type existingLists struct {
	mu    sync.Mutex
	byKey map[listing.ListKey]*existing
}

// existingListsKey is the key of existingLists in the state of a resource.
type existingListsKey struct{}

// get returns what is known of a list, or nil.
func (l *existingLists) get(key listing.ListKey) *existing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byKey[key]
}

// getOrPut returns what is known of a list, which is nothing at the first call.
func (l *existingLists) getOrPut(key listing.ListKey, ofShard bool) *existing {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.byKey[key]
	if !ok {
		if l.byKey == nil {
			l.byKey = map[listing.ListKey]*existing{}
		}
		known = &existing{ofShard: ofShard}
		l.byKey[key] = known
	}
	return known
}

var _ resourcestate.Evictor = (*existingLists)(nil)

// Evict implements [resourcestate.Evictor].
func (l *existingLists) Evict(time.Time) (empty bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.byKey, func(_ listing.ListKey, known *existing) bool { return known.isOver() })
	return len(l.byKey) == 0
}

// isOver reports whether nothing has to be known any more.
func (e *existing) isOver() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.ofShard && e.areShown
}

// shows reports whether the cache shows all children that exist.
func (e *existing) shows(shown []client.Object) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := len(e.uids)
	for _, obj := range shown {
		if e.uids[obj.GetUID()] {
			left--
		}
	}
	e.areShown = e.complete && left == 0
	return e.areShown
}

// isNew reports whether the API server was never asked.
func (e *existing) isNew() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.asked
}

// answered notes that the API server was asked, and that these objects exist.
func (e *existing) answered(objects []client.Object) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.complete, e.asked = true, true
	e.uids = make(map[types.UID]bool, len(objects))
	for _, obj := range objects {
		e.uids[obj.GetUID()] = true
	}
}

// created notes that an object exists.
func (e *existing) created(obj client.Object) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.uids == nil {
		e.uids = map[types.UID]bool{}
	}
	e.uids[obj.GetUID()] = true
}

// doubt notes that a child may exist that is not known.
func (e *existing) doubt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.complete, e.areShown = false, false
}

// existing returns what is known to exist of the children. It returns nil if the cache shows all of them. inDoubt says
// that a child may exist that is not known.
func (k *children[T, CT, CLT]) existing(ctx context.Context, config Config, inDoubt bool) *existing {
	request, ofShard := listKeeper(ctx), k.filteredByShard(config)
	if request == nil {
		return nil
	}
	if !ofShard && !inDoubt {
		if lists, some := resourcestate.Load[*existingLists](request.resource, existingListsKey{}); some {
			return lists.get(k.listKey(ctx, config))
		}
		return nil
	}
	lists := resourcestate.LoadOrNew[existingLists](request.resource, existingListsKey{})
	known := lists.getOrPut(k.listKey(ctx, config), ofShard)
	if inDoubt {
		known.doubt()
	}
	return known
}

// withHidden returns what the cache shows together with the children that it does not show, sorted.
func (k *children[T, CT, CLT]) withHidden(
	ctx context.Context, config Config, resource T, shown []client.Object,
) ([]client.Object, error) {
	known := k.existing(ctx, config, false)
	if known == nil || known.shows(shown) {
		return shown, nil
	}
	if !known.ofShard {
		all, err := k.live(ctx, config, resource)
		if apierrs.IsBadRequest(err) {
			// Only the cache understands the list options of the author.
			all, err = shown, nil
		}
		if err == nil {
			known.answered(all)
		}
		return all, err
	}
	since := time.Now()
	if s := contextOf(ctx); known.isNew() {
		since = shard.ArrivedAt(config.shard, resourceOfShard(config, s.originalResourceType, s.request))
	}
	hidden, err := k.hidden(ctx, config, resource, shown, since)
	if err != nil {
		return nil, err
	}
	if len(hidden) > 0 {
		listKeeper(ctx).wakeAfter(hiddenRevisit)
	}
	all := append(shown, hidden...)
	known.answered(all)
	listKeeper(ctx).noteAsked(k.listKey(ctx, config))
	listing.Sort(all)
	return all, nil
}

// noteExisting notes what a call of Manage says of which children exist.
func (k *children[T, CT, CLT]) noteExisting(
	ctx context.Context, config Config, actual, desired, written CT, err error,
) {
	isCreated, ofShard := !gotype.IsNil(written), k.filteredByShard(config)
	if !isAbsent(actual) || !isCreated && err == nil {
		return
	}
	isGenerated := !gotype.IsNil(desired) && desired.GetName() == "" && config.APIReader != nil
	inDoubt := !isCreated && (ofShard || isGenerated && Classify(err) == ClassRetry)
	known := k.existing(ctx, config, inDoubt)
	if known == nil || !ofShard {
		return
	}
	if isCreated {
		known.created(written)
	}
	// What was asked before does not have the child.
	forgetArrival(ctx, config)
}
