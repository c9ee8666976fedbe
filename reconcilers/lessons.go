package reconcilers

import (
	"context"
	"sync"

	"github.com/espalier-dev/espalier/internal/digest"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// intent identifies what is desired of an object: two equal intents desire the same.
type intent struct {
	digest uint64
	known  bool
}

// intentOf returns the intent of desired. An object that has no digest desires something new each time.
func intentOf(desired client.Object) intent {
	sum, ok := digest.Of(desired)
	return intent{digest: sum, known: ok}
}

// lesson is what a manager knows of an object from its last write, or its last comparison.
type lesson struct {
	intent intent
	// version is the resource version at which object and intent agreed.
	version string
	// round is when the lesson was last used.
	round uint64
	// additions are what the server adds to what is desired; nil if nothing, or not known.
	additions *Patch
}

// agreed tells whether actual is still the very version that agreed with the intent.
func (l lesson) agreed(actual client.Object) bool {
	return l.version != "" && l.version == actual.GetResourceVersion()
}

// newAdditions is the difference between what was desired (merged into base) and what the server made of it. It applies to
// desired, whose generation is not that of an object in the cluster.
func newAdditions(base, written, desired client.Object) (*Patch, error) {
	patch, err := NewPatch(base, written)
	if err != nil {
		return nil, err
	}
	if string(patch.bytes) == "[]" {
		return nil, nil
	}
	patch.generation = desired.GetGeneration()
	return patch, nil
}

// lessonLimit bounds what a manager remembers where there is no root to remember for it.
const lessonLimit = 4096

// lessons are those of one manager. Below a root they are kept in the memory of the reconciled resource and go with it;
// elsewhere (a manager called by a hand-written reconciler) the manager keeps the latest ones itself.
type lessons struct {
	own *notebook
}

func (l *lessons) init() {
	l.own = &notebook{overflow: lru.New(lessonLimit)}
}

func (l *lessons) of(ctx context.Context) *notebook {
	if p := scopeOf(ctx).pass; p != nil && p.memory != nil {
		return recall(p.memory, l, func() *notebook { return &notebook{byUID: map[types.UID]lesson{}} })
	}
	return l.own
}

// notebook holds lessons by the UID of the object. An object without a UID, as tests have, is not remembered.
type notebook struct {
	mu       sync.Mutex
	byUID    map[types.UID]lesson
	round    uint64
	overflow *lru.Cache
}

var _ sweeper = (*notebook)(nil)

// sweep drops the lessons that have not been used for a while: their objects are gone, or not this tree's any more.
func (n *notebook) sweep() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for uid, known := range n.byUID {
		if n.round-known.round > patience {
			delete(n.byUID, uid)
		}
	}
	n.round++
	return len(n.byUID) > 0
}

// recall returns the lesson about the object, empty if there is none for the intent.
func (n *notebook) recall(uid types.UID, intent intent) lesson {
	known := n.read(uid)
	if !intent.known || known.intent != intent {
		return lesson{}
	}
	return known
}

func (n *notebook) read(uid types.UID) lesson {
	if n.overflow != nil {
		known, _ := n.overflow.Get(uid)
		l, _ := known.(lesson)
		return l
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	known, ok := n.byUID[uid]
	if ok && known.round != n.round {
		known.round = n.round
		n.byUID[uid] = known
	}
	return known
}

// agree notes that actual agrees with the intent, given what the server adds to it.
func (n *notebook) agree(actual client.Object, intent intent, known lesson) {
	uid := actual.GetUID()
	if uid == "" || !intent.known {
		return
	}
	known.intent = intent
	known.version = actual.GetResourceVersion()
	if n.overflow != nil {
		n.overflow.Add(uid, known)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	known.round = n.round
	n.byUID[uid] = known
}

func (n *notebook) forget(uid types.UID) {
	if n.overflow != nil {
		n.overflow.Remove(uid)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.byUID, uid)
}
