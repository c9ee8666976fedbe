package page

import (
	"container/list"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/statusfield"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxRequests limits how many of the last requests for a resource are kept.
const maxRequests = 20

// resourceRecord has what is known of one resource.
type resourceRecord struct {
	root *rootRecord
	key  types.NamespacedName
	// element is guarded by the lock of the recorder.
	element *list.Element

	mu sync.Mutex
	// gone is true once the record was dropped. Then nothing counts it any more.
	gone bool
	resourceState
}

// resourceState is what is known of a resource at one time. Its slices and what they hold are never changed, but the
// nodes.
type resourceState struct {
	nodes []nodeRecord
	// count is the number of requests.
	count      uint64
	requests   []requestRecord
	conditions []metav1.Condition
	features   []apis.FeatureStatus
	components map[string]*progressRecord
	// deleted is when the resource was deleted, if it was.
	deleted time.Time
	// finalizers are those of the resource.
	finalizers []string
	// version is the version of the resource that conditions and features are of.
	version string
}

// nodeRecord is what a node did last for one resource.
type nodeRecord struct {
	run
	// request is the number of the request in which it ran.
	request uint64
	when    time.Time
	// since is when the node was first in its state.
	since time.Time
	// counted is the state with which the resource counts at the node: none if it had no part in the last request.
	counted state
}

// requestRecord is a request that has ended.
type requestRecord struct {
	when    time.Time
	took    time.Duration
	causes  []reconcilers.Cause
	state   state
	err     string
	delay   time.Duration
	writes  []writeRecord
	omitted int
}

// merge keeps a request that has ended, and returns how the resource counts otherwise.
func (r *resourceRecord) merge(ended *request, outcome reconcilers.Outcome, room *atomic.Int64) []move {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		for _, made := range ended.components {
			made.inventory.release(room)
		}
		return nil
	}
	r.count++
	var moves []move
	r.nodes = append(r.nodes, make([]nodeRecord, max(0, len(ended.runs)-len(r.nodes)))...)
	for slot := range r.nodes {
		n := &r.nodes[slot]
		now := stateNone
		if slot < len(ended.runs) && ended.runs[slot].runs > 0 {
			ran := ended.runs[slot]
			now = ran.state
			if ran.state != n.state {
				n.since = ended.began
			}
			n.run, n.request, n.when = ran, r.count, ended.began
		}
		if now != n.counted {
			moves = append(moves, move{slot: slot, from: n.counted, to: now})
			n.counted = now
		}
	}
	r.keepRequest(ended, outcome)
	r.keepStatus(outcome)
	r.keepComponents(ended, room)
	return moves
}

func (r *resourceRecord) keepRequest(ended *request, outcome reconcilers.Outcome) {
	root := ended.runs[0]
	made := requestRecord{
		when: ended.began, took: outcome.Took, causes: ended.causes, state: root.state, err: root.err,
		delay: outcome.Result.RequeueAfter, writes: ended.writes, omitted: ended.omitted,
	}
	if r.count > 1 {
		// A request that ended like the one before shares its texts.
		before := &r.requests[(r.count-2)%maxRequests]
		if slices.Equal(before.writes, made.writes) {
			made.writes = before.writes
		}
		if before.err == made.err {
			made.err = before.err
		}
	}
	if len(r.requests) < maxRequests {
		r.requests = append(r.requests, made)
		return
	}
	r.requests[r.last()] = made
}

// last is the index of the last request.
func (r *resourceState) last() int { return int((r.count - 1) % maxRequests) }

// keepStatus keeps the conditions and the records of features. They are copied only if they can have changed.
func (r *resourceRecord) keepStatus(outcome reconcilers.Outcome) {
	if outcome.Resource == nil {
		return
	}
	r.deleted = time.Time{}
	if at := outcome.Resource.GetDeletionTimestamp(); at != nil {
		r.deleted = at.Time
	}
	if now := outcome.Resource.GetFinalizers(); !slices.Equal(now, r.finalizers) {
		r.finalizers = slices.Clone(now)
	}
	version := outcome.Resource.GetResourceVersion()
	if !slices.Equal(r.conditions, outcome.Conditions) {
		r.conditions = slices.Clone(outcome.Conditions)
		for i := range r.conditions {
			r.conditions[i].Message = message.Truncate(r.conditions[i].Message, 4*maxText)
		}
	}
	if version != "" && version == r.version && outcome.Writes == 0 {
		return
	}
	r.version, r.features = strings.Clone(version), nil
	if status := statusfield.PartOf[apis.LifecycleStatus](outcome.Resource); status != nil {
		r.features = status.DeepCopy().Features
	}
}

func (r *resourceRecord) keepComponents(ended *request, room *atomic.Int64) {
	for path, made := range ended.components {
		before := r.components[path]
		if before == nil && len(r.components) == maxComponents {
			made.inventory.release(room)
			continue
		}
		if before != nil && before.inventory != made.inventory {
			before.inventory.release(room)
		}
		if made.state == "" {
			// Nothing is left of the component.
			made.inventory.release(room)
			delete(r.components, path)
			continue
		}
		if r.components == nil {
			r.components = map[string]*progressRecord{}
		}
		r.components[path] = made
	}
}

// component returns how a component was after the last request, or nil.
func (r *resourceRecord) component(path string) *progressRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.components[path]
}

// leave is called when the record was dropped.
func (r *resourceRecord) leave(recorder *recorder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = true
	var moves []move
	for slot := range r.nodes {
		if from := r.nodes[slot].counted; from != stateNone {
			moves = append(moves, move{slot: slot, from: from})
		}
	}
	for _, c := range r.components {
		c.inventory.release(&recorder.room)
	}
	r.resourceState = resourceState{}
	r.root.recount(nil, moves)
}

// resourceSnapshot is what is known of a resource at one time.
type resourceSnapshot struct {
	key types.NamespacedName
	resourceState
	// running is how many runs of each node are going on now; nil if no request is.
	running []int
	// runningSince is when the request began that runs now.
	runningSince time.Time
}

// snapshot returns what is known. The requests are the last one first.
func (r *resourceRecord) snapshot() resourceSnapshot {
	r.mu.Lock()
	s := resourceSnapshot{key: r.key, resourceState: r.resourceState}
	s.nodes, s.requests = slices.Clone(r.nodes), nil
	for i := range r.requests {
		s.requests = append(s.requests, r.requests[(r.last()-i+len(r.requests))%len(r.requests)])
	}
	s.components = make(map[string]*progressRecord, len(r.components))
	for path, c := range r.components {
		s.components[path] = c
	}
	r.mu.Unlock()
	s.running, s.runningSince = r.root.runningFor(r), r.root.runningSince()[r]
	return s
}

// brief is how a resource is, for a list.
type brief struct {
	key    types.NamespacedName
	state  state
	when   time.Time
	since  time.Time
	took   time.Duration
	err    string
	reason string
	// refused is true if the reason is that of a refusal.
	refused bool
	// running is since when a request runs, and deleted since when the resource is being deleted, if so.
	running, deleted time.Time
}

func (r *resourceRecord) brief() brief {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := brief{key: r.key, deleted: r.deleted}
	if len(r.nodes) > 0 {
		root := &r.nodes[0]
		b.state, b.when, b.since, b.took, b.err = root.state, root.when, root.since, root.took, root.err
	}
	b.explain(r.conditions)
	return b
}

// explain keeps the condition that says why the resource is not as it is to be.
func (b *brief) explain(conditions []metav1.Condition) {
	if c := whyNot(conditions); c != nil {
		b.reason, b.refused = conditionText(c), statusfield.IsRefused(c)
	}
}

// whyNot returns the condition that says best why a resource is not as it is to be, or nil: the one that sums up the
// others, and otherwise the worst.
func whyNot(conditions []metav1.Condition) *metav1.Condition {
	var worst *metav1.Condition
	for i := range conditions {
		switch c := &conditions[i]; {
		case c.Status == metav1.ConditionTrue:
		case c.Type == apis.ConditionReady, c.Type == apis.ConditionSucceeded:
			return c
		case worst == nil || statusfield.Severity(c) > statusfield.Severity(worst):
			worst = c
		}
	}
	return worst
}
