package informers

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// longestGap is the longest time between two events. Gaps are drawn in nanoseconds, so that hardly ever two handlers
// are told something in the same moment.
const longestGap = 10 * time.Microsecond

// handler passes events on one by one.
type handler struct {
	to    cache.ResourceEventHandler
	added time.Time

	// mu protects what follows.
	mu     sync.Mutex
	random *rand.Rand
	// arrived are events in the order in which they came, ordered are those before them, in the order in which they are
	// passed on.
	arrived, ordered []event
	// busy is whether an event is passed on, or will be.
	busy bool
}

// event is something to tell.
type event struct {
	tell func()
	// initial is whether the object was there when the handler was added.
	initial bool
	// revision is that of the object.
	revision int64
}

// OnAdd implements [cache.ResourceEventHandler].
func (h *handler) OnAdd(obj any, initial bool) {
	h.add(event{func() { h.to.OnAdd(obj, initial) }, initial, revision(obj)})
}

// OnUpdate implements [cache.ResourceEventHandler].
func (h *handler) OnUpdate(old, obj any) {
	h.add(event{func() { h.to.OnUpdate(old, obj) }, false, revision(obj)})
}

// OnDelete implements [cache.ResourceEventHandler].
func (h *handler) OnDelete(obj any) {
	h.add(event{func() { h.to.OnDelete(obj) }, false, revision(obj)})
}

// revision returns that of an object, or 0 if it has none.
func revision(obj any) int64 {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(m.GetResourceVersion(), 10, 64)
	return n
}

func (h *handler) add(e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.arrived = append(h.arrived, e)
	if !h.busy {
		h.busy = true
		h.wait()
	}
}

func (h *handler) wait() { time.AfterFunc(1+time.Duration(h.random.Int64N(int64(longestGap))), h.pass) }

// pass passes an event on.
func (h *handler) pass() {
	h.take().tell()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy = len(h.arrived)+len(h.ordered) > 0; h.busy {
		h.wait()
	}
}

// take returns the next event.
func (h *handler) take() event {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ordered) == 0 {
		h.ordered, h.arrived = h.order(h.arrived), nil
	}
	e := h.ordered[0]
	h.ordered = h.ordered[1:]
	return e
}

// order orders events that arrived together. Objects that were there are told in an order that is drawn. All others
// are told in the order in which they were written, in which a watch sends them. Events of one object stay in order.
func (h *handler) order(events []event) []event {
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.revision, b.revision) })
	var initial, later []event
	for _, e := range events {
		if e.initial {
			initial = append(initial, e)
		} else {
			later = append(later, e)
		}
	}
	h.random.Shuffle(len(initial), func(i, j int) { initial[i], initial[j] = initial[j], initial[i] })
	return append(initial, later...)
}

func (h *handler) idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.busy
}
