package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/store"
	rtime "github.com/espalier-dev/espalier/time"
)

// run is one run of a program.
type run struct {
	program  Program
	clusters map[string]*cluster
	now      atomic.Pointer[time.Time]

	// mu makes calls to clusters happen one after the other, so that what changed is known to be their effect.
	mu       sync.Mutex
	faults   []fault.Fault
	happened map[fault.Fault]bool
	// faultless keeps faults from happening.
	faultless     bool
	occurrences   map[string]int
	requests      []*request
	externalCalls int
	current       *instance
	// step is what others did since the last request; empty if nothing.
	step string
	// resource is what the requests are about; nil until it was read.
	resource *metav1.PartialObjectMetadata
	// conflicts are the objects that the fault Conflicts has written.
	conflicts []conflict
	// broken says which calls broke the invariant.
	broken []string

	// externalStates are those after the last request, as JSON.
	externalStates string
	// began are those before the first request.
	began string

	// onEnd is what Begin returned; nil once it was called.
	onEnd func()
}

// cluster is a cluster of a run.
type cluster struct {
	name    string
	options store.ClientOptions
	store   *store.Store
	view    *store.View
	// base is the revision at the beginning.
	base int64
}

// newRun begins a run. The error is that of Begin.
func newRun(ctx context.Context, program Program, faults []fault.Fault) (*run, error) {
	r := &run{
		program: program, clusters: map[string]*cluster{}, faults: faults,
		happened: map[fault.Fault]bool{}, occurrences: map[string]int{},
	}
	r.now.Store(&program.Now)
	for name, given := range program.Clusters {
		c := &cluster{name: name, options: given.Options, store: given.Store.Fork(), view: store.NewView()}
		c.store.SetNow(r.time)
		c.base = c.store.Revision()
		c.view.Hide(given.Hidden...)
		r.clusters[name] = c
	}
	for _, external := range program.Externals {
		if external.Reset != nil {
			external.Reset()
		}
	}
	if program.Begin != nil {
		end, err := program.Begin(rtime.StashNow(ctx, r.time()))
		if err != nil {
			return nil, fmt.Errorf("begin a run: %w", err)
		}
		r.onEnd = end
	}
	r.externalStates = r.readExternals()
	r.began = r.externalStates
	return r, nil
}

// toRest makes requests until the run is at rest, and reports whether it came to rest within the limit. The error says
// that the code did not start, or that the context is done.
func (r *run) toRest(ctx context.Context, limit int) (bool, error) {
	var pace Rest
	for range limit {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		q, err := r.makeRequest(ctx)
		if err != nil {
			return false, err
		}
		if errors.Is(q.err, errEndless) {
			return false, nil
		}
		rest, delay := pace.After(q.outcome())
		if rest {
			return true, nil
		}
		r.pass(delay)
	}
	return false, nil
}

// makeRequest has the instance make a request, or a new one if there is none. Then the control plane acts, and caches
// see what they did not.
func (r *run) makeRequest(ctx context.Context) (*request, error) {
	q := &request{}
	r.mu.Lock()
	q.step, r.step = r.step, ""
	if r.current == nil {
		r.current = newInstance(ctx)
	}
	r.requests = append(r.requests, q)
	before, external := r.revisions(), r.externalStates
	r.mu.Unlock()

	err := r.current.make(ctx, r, q)
	switch {
	case errors.Is(err, errStuck):
		return nil, r.withFaults(err)
	case err != nil && len(r.faults) == 0:
		return nil, err
	}
	r.reap(ctx, q, err != nil)
	if r.callsExternal(q) {
		r.externalStates = r.readExternals()
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(r.clusters)) {
		c := r.clusters[name]
		r.collectGarbage(c)
		q.moved = c.view.CatchUp() || q.moved
	}
	q.moved = q.moved || r.movedSince(before) || r.externalStates != external
	return q, nil
}

// movedSince reports whether something changed in the clusters since they had revisions.
func (r *run) movedSince(revisions map[*cluster]int64) bool {
	for c, revision := range revisions {
		for _, change := range c.store.Changes(revision) {
			if !r.program.IgnoreObserved || !observes(change) {
				return true
			}
		}
	}
	return false
}

// revisions are those of the clusters.
func (r *run) revisions() map[*cluster]int64 {
	revisions := map[*cluster]int64{}
	for _, c := range r.clusters {
		revisions[c] = c.store.Revision()
	}
	return revisions
}

// reap notes whether the instance died in a request or failed to start, and waits until it does nothing any more.
func (r *run) reap(ctx context.Context, q *request, failed bool) {
	in := r.current
	r.mu.Lock()
	if q.died = in.dead || failed; q.died {
		in.die()
		r.current = nil
	}
	r.mu.Unlock()
	if q.died {
		in.wait(ctx)
	}
}

// withFaults adds the faults that happened to an error.
func (r *run) withFaults(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var happened []string
	for _, f := range r.faults {
		if r.happened[f] {
			happened = append(happened, f.String())
		}
	}
	if len(happened) == 0 {
		return err
	}
	return fmt.Errorf("after %s: %w", strings.Join(happened, " and "), err)
}

// callsExternal reports whether a request called something outside of the clusters.
func (r *run) callsExternal(q *request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(q.calls, (*call).external)
}

// stop ends the instance, and then the run. To call it again does nothing.
func (r *run) stop(ctx context.Context) {
	r.mu.Lock()
	in, end := r.current, r.onEnd
	r.onEnd = nil
	if in != nil {
		in.die()
	}
	r.mu.Unlock()
	if in != nil {
		in.wait(ctx)
	}
	if end != nil {
		end()
	}
}

// time is the time in the world.
func (r *run) time() time.Time {
	if r.program.Now.IsZero() {
		return time.Now()
	}
	return *r.now.Load()
}

// pass lets time pass. Each request of a program that has a time is at another second, in which code that notes the time
// of each request changes something.
func (r *run) pass(delay time.Duration) {
	if r.program.Now.IsZero() {
		time.Sleep(delay)
		return
	}
	now := r.now.Load().Add(max(delay, time.Second))
	r.now.Store(&now)
}

// state is that of now.
func (r *run) state() state {
	s := state{externalCalls: r.externalCalls}
	for _, c := range r.clusters {
		s.revision += c.store.Revision()
	}
	return s
}

// readExternals returns the states of all externals, as JSON.
func (r *run) readExternals() string {
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
