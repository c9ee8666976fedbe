package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/store"
)

// polls is how many requests in a row that change nothing and ask for the same delay are taken for rest.
const polls = 3

// run is one run of a program.
type run struct {
	program  Program
	clusters map[string]*cluster
	now      atomic.Pointer[time.Time]

	// mu makes calls to clusters happen one after the other, so that what changed is known to be their effect.
	mu          sync.Mutex
	faults      []Fault
	happened    map[Fault]bool
	occurrences map[string]int
	requests    []*request
	externals   int
}

// cluster is a cluster of a run.
type cluster struct {
	name  string
	store *store.Store
	view  *store.View
	// base is the revision at the beginning.
	base int64
}

func newRun(program Program, faults []Fault) *run {
	r := &run{
		program: program, clusters: map[string]*cluster{}, faults: faults,
		happened: map[Fault]bool{}, occurrences: map[string]int{},
	}
	r.now.Store(&program.Now)
	for name, given := range program.Clusters {
		c := &cluster{name: name, store: given.Store.Fork(), view: store.NewView()}
		c.base = c.store.Revision()
		c.view.Hide(given.Hidden...)
		r.clusters[name] = c
	}
	for _, external := range program.Externals {
		external.Reset()
	}
	return r
}

// toRest makes requests until the run is at rest, and reports whether it came to rest within the limit. The error says
// that the code did not start, or that the context is done.
func (r *run) toRest(ctx context.Context, limit int) (bool, error) {
	var current *instance
	defer func() { current.end(&r.mu) }()
	externals := r.externalStates()
	quiet, delay := 0, time.Duration(0)
	for range limit {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if current == nil {
			current = newInstance(ctx)
		}
		q, err := r.makeRequest(current)
		if err != nil {
			return false, err
		}
		if q.died {
			current.end(&r.mu)
			current = nil
		}
		if q.external() {
			states := r.externalStates()
			q.moved = q.moved || states != externals
			externals = states
		}
		if quiet++; !q.quiet() || q.delay() != delay {
			quiet, delay = 1, q.delay()
		}
		if q.quiet() && (delay == 0 || quiet == polls) {
			return true, nil
		}
		r.pass(q.delay())
	}
	return false, nil
}

// makeRequest has an instance make a request, after it started if it did not yet. Then the control plane acts, and
// caches see what they did not.
func (r *run) makeRequest(in *instance) (*request, error) {
	q := &request{}
	r.mu.Lock()
	r.requests = append(r.requests, q)
	before := r.state().revision
	r.mu.Unlock()

	err := in.make(r, q)

	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && len(r.faults) == 0 {
		return nil, err
	}
	q.died = in.dead || err != nil
	for _, c := range r.clusters {
		c.store.CollectGarbage()
		q.moved = c.view.CatchUp() || q.moved
	}
	q.moved = q.moved || r.state().revision != before
	return q, nil
}

// pass lets time pass.
func (r *run) pass(delay time.Duration) {
	now := r.now.Load().Add(delay)
	r.now.Store(&now)
}

// state is that of now.
func (r *run) state() state {
	s := state{externals: r.externals}
	for _, c := range r.clusters {
		s.revision += c.store.Revision()
	}
	return s
}

// externalStates are what is outside of the clusters, as JSON.
func (r *run) externalStates() string {
	if len(r.program.Externals) == 0 {
		return ""
	}
	states := make([]any, len(r.program.Externals))
	for i, external := range r.program.Externals {
		states[i] = external.End()
	}
	data, err := json.Marshal(states)
	if err != nil {
		return fmt.Sprintf("%q", err.Error())
	}
	return string(data)
}

// calls are those of all requests.
func (r *run) calls() []*call {
	var calls []*call
	for _, q := range r.requests {
		calls = append(calls, q.calls...)
	}
	return calls
}

// journal has the changes of each cluster since the beginning.
func (r *run) journal() map[*cluster][]store.Change {
	journal := map[*cluster][]store.Change{}
	for _, c := range r.clusters {
		journal[c] = c.store.Changes(c.base)
	}
	return journal
}
