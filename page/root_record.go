package page

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/tracker"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The limits of what is known of the nodes of one root.
const (
	// maxSlots is for nodes that functions of the author make: a tree has fewer.
	maxSlots = 200
	// maxPointers is for functions that return a new node for each request.
	maxPointers = 4 * maxSlots
)

// slotKey is what identifies a node of a root. A combinator without a name has the path of the node around it.
type slotKey struct{ path, kind string }

func keyOf(node *reconcilers.Node) slotKey { return slotKey{path: node.Path, kind: node.Kind} }

// rootRecord has what is known of one root. Each node has a slot, which is an index of slices here and in the records
// of resources.
type rootRecord struct {
	id   string
	node *reconcilers.Node
	// resources is guarded by the lock of the recorder.
	resources map[types.NamespacedName]*resourceRecord
	setUpWith atomic.Pointer[setUp]
	lastTook  atomic.Int64
	requests  atomic.Uint64

	pointers     sync.Map // of *reconcilers.Node to int
	pointerCount atomic.Int32

	// mu is taken last: the locks of a request and of a resource are taken before it.
	mu     sync.RWMutex
	slots  map[slotKey]int
	nodes  []*reconcilers.Node
	counts []stateCounts
	// running are the requests that are not finished.
	running map[*request]struct{}
	// watching is what components watch in clusters.
	watching []component.Watching
}

// setUp is what is known of a root since its set-up.
type setUp struct {
	reconcilers.SetUp
	// tracker is the tracker of the config; nil if it does not tell its size.
	tracker tracker.Sizer
}

// stateCounts are numbers of resources, by the state in which the last request left them or one of their nodes.
type stateCounts [stateEnd]int

// state is [reconcilers.State] in one byte. The later of two is the worse.
type state uint8

const (
	stateNone state = iota
	stateUnchanged
	stateChanged
	stateWaiting
	stateHalted
	stateError
	stateEnd
)

// states are those that a node can end in.
var states = [...]reconcilers.State{
	stateUnchanged: reconcilers.StateUnchanged,
	stateChanged:   reconcilers.StateChanged,
	stateWaiting:   reconcilers.StateWaiting,
	stateHalted:    reconcilers.StateHalted,
	stateError:     reconcilers.StateError,
}

func (s state) String() string { return string(states[s]) }

func stateOf(s reconcilers.State) state {
	for i, known := range states {
		if known == s {
			return state(i)
		}
	}
	return stateNone
}

func newRootRecord(id string, node *reconcilers.Node) *rootRecord {
	r := &rootRecord{
		id: id, node: node, resources: map[types.NamespacedName]*resourceRecord{}, slots: map[slotKey]int{},
		running: map[*request]struct{}{},
	}
	r.slot(node)
	return r
}

// setUp keeps the fact of the set-up. The context is that of the root.
func (r *rootRecord) setUp(ctx context.Context, fact reconcilers.SetUp) {
	made := &setUp{SetUp: fact}
	if config, err := reconcilers.RetrieveOriginalConfig(ctx); err == nil && config.Tracker != nil {
		// Views of one tracker, for controllers and clusters, are the same.
		made.tracker, _ = tracker.InCluster(tracker.ForController(config.Tracker, ""), nil).(tracker.Sizer)
	}
	r.setUpWith.Store(made)
}

// watches notes what components watch in a cluster, and drops what they do not watch any more.
func (r *rootRecord) watches(watching component.Watching) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watching = append(r.runningWatches(), watching)
}

func (r *rootRecord) runningWatches() []component.Watching {
	return slices.DeleteFunc(slices.Clone(r.watching), func(w component.Watching) bool {
		_, _, running := w.Size()
		return !running
	})
}

// slot returns the slot of a node, or -1 if there is no room for one. The root has the slot 0.
func (r *rootRecord) slot(node *reconcilers.Node) int {
	if known, ok := r.pointers.Load(node); ok {
		return known.(int)
	}
	slot := r.slotByKey(node)
	if slot >= 0 && r.pointerCount.Add(1) <= maxPointers {
		r.pointers.Store(node, slot)
	}
	return slot
}

func (r *rootRecord) slotByKey(node *reconcilers.Node) int {
	key := keyOf(node)
	r.mu.RLock()
	slot, ok := r.slots[key]
	r.mu.RUnlock()
	if ok {
		return slot
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slot, ok := r.slots[key]; ok {
		return slot
	}
	if len(r.nodes) == maxSlots {
		return -1
	}
	r.slots[key] = len(r.nodes)
	r.nodes, r.counts = append(r.nodes, node), append(r.counts, stateCounts{})
	return len(r.nodes) - 1
}

func (r *rootRecord) begin(running *request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[running] = struct{}{}
}

// recount notes that a request has ended, and that a resource counts otherwise at some nodes.
func (r *rootRecord) recount(ended *request, moves []move) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, ended)
	for _, m := range moves {
		if m.from != stateNone {
			r.counts[m.slot][m.from]--
		}
		if m.to != stateNone {
			r.counts[m.slot][m.to]++
		}
	}
}

// move is the change of how a resource counts at a node.
type move struct {
	slot     int
	from, to state
}

// rootSnapshot is what is known of a root at one time.
type rootSnapshot struct {
	id        string
	node      *reconcilers.Node
	tree      *reconcilers.Description
	nodes     []*reconcilers.Node
	counts    []stateCounts
	resources int
	requests  uint64
	lastTook  time.Duration
	// running is how many requests are in each node now.
	running []int
	// watched are the types that nodes watch, and watching what components do.
	watched  []schema.GroupVersionKind
	watching []component.Watching
}

// snapshotOf returns what is known of a root.
func (r *recorder) snapshotOf(root *rootRecord) rootSnapshot {
	r.mu.Lock()
	resources := len(root.resources)
	r.mu.Unlock()
	s := rootSnapshot{
		id: root.id, node: root.node, resources: resources,
		requests: root.requests.Load(), lastTook: time.Duration(root.lastTook.Load()),
	}
	if known := root.setUpWith.Load(); known != nil {
		s.tree, s.watched = &known.Tree, known.Watched
	}
	root.mu.RLock()
	s.nodes = root.nodes[:len(root.nodes):len(root.nodes)]
	s.counts = append(s.counts, root.counts...)
	running := slices.Collect(maps.Keys(root.running))
	s.watching = root.runningWatches()
	root.mu.RUnlock()
	s.running = make([]int, len(s.nodes))
	for _, r := range running {
		r.countRunning(s.running)
	}
	return s
}

// runningSince returns since when requests run, for the resources for which one does.
func (r *rootRecord) runningSince() map[*resourceRecord]time.Time {
	r.mu.RLock()
	defer r.mu.RUnlock()
	since := make(map[*resourceRecord]time.Time, len(r.running))
	for running := range r.running {
		since[running.resource] = running.began
	}
	return since
}

// runningFor returns how many runs of each node are going on now for a resource, or nil if no request for it is.
func (r *rootRecord) runningFor(resource *resourceRecord) []int {
	r.mu.RLock()
	counts := make([]int, len(r.nodes))
	running := slices.Collect(maps.Keys(r.running))
	r.mu.RUnlock()
	running = slices.DeleteFunc(running, func(r *request) bool { return r.resource != resource })
	for _, r := range running {
		r.countRunning(counts)
	}
	if len(running) == 0 {
		return nil
	}
	return counts
}
