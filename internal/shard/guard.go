package shard

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// ErrNotHeld is wrapped by the error of what a shard does not do because it does not hold its Lease. It may hold the
// Lease later.
var ErrNotHeld = errors.New("the shard does not hold its Lease")

// guard knows whether a shard may write. A process that was frozen goes on with a write before it notices that another
// has its objects. So each write is checked here, last.
type guard struct {
	shard    string
	deadline time.Duration
	counters *counters

	mu sync.Mutex
	// last is when the renewal of the Lease began that succeeded last. It is zero if the Lease was never held.
	last time.Time
	// given is true once the shard gives its Lease back.
	given bool
	// requests is how many requests of resources run, and writes how many writes are under way.
	requests, writes int
}

// renewed notes a renewal of the Lease that began at that time.
func (g *guard) renewed(begin time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if begin.After(g.last) {
		g.last = begin
	}
}

// held returns an error if the Lease is not held. The caller holds the mutex.
func (g *guard) held(now time.Time) error {
	switch {
	case g.given:
		return fmt.Errorf("%w %q any more, since it was given back", ErrNotHeld, g.shard)
	case g.last.IsZero():
		return fmt.Errorf("%w %q yet", ErrNotHeld, g.shard)
	// The first is by the monotonic clock. The clock of a machine that was suspended stands, that of the wall does not.
	case now.Sub(g.last) >= g.deadline, now.Round(0).Sub(g.last.Round(0)) >= g.deadline:
		return fmt.Errorf("%w %q any more, since it was not renewed for %s", ErrNotHeld, g.shard, g.deadline)
	}
	return nil
}

// isHeld reports whether the Lease is held.
func (g *guard) isHeld(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held(now) == nil
}

// begin notes that a request of a resource begins.
func (g *guard) begin() (end func(), err error) { return g.count(&g.requests) }

// count adds one to a number, until end is called. It returns an error if the Lease is not held.
func (g *guard) count(number *int) (end func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.held(time.Now()); err != nil {
		return nil, err
	}
	*number++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		*number--
	}), nil
}

// giveBack ends all that the guard lets through. It returns an error if something still runs, so that the Lease must
// not be released.
func (g *guard) giveBack() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.given = true
	if g.requests > 0 || g.writes > 0 {
		return fmt.Errorf("%d requests and %d writes still run, so the Lease %q expires instead of being released",
			g.requests, g.writes, g.shard)
	}
	return nil
}

// Guard has the clients that are made of config refuse to write while the shard does not hold its Lease.
func Guard(s *Shard, config *rest.Config) {
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return &guarded{inner: inner, guard: s.guard} })
}

// guarded is a transport that refuses writes.
type guarded struct {
	inner http.RoundTripper
	guard *guard
}

// RoundTrip implements [http.RoundTripper].
func (t *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isWrite(req) {
		return t.inner.RoundTrip(req)
	}
	end, err := t.guard.count(&t.guard.writes)
	if err != nil {
		t.guard.counters.refused.Add(1)
		if req.Body != nil {
			_ = req.Body.Close() // nothing of it was read
		}
		return nil, fmt.Errorf("%s was not sent: %w", req.Method, err)
	}
	defer end()
	return t.inner.RoundTrip(req)
}

// WrappedRoundTripper returns the transport that has the connections.
func (t *guarded) WrappedRoundTripper() http.RoundTripper { return t.inner }

// isWrite reports whether a request changes something. Reviews of tokens and of rights are asked with POST.
func isWrite(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	for _, group := range []string{"/apis/authentication.k8s.io/", "/apis/authorization.k8s.io/"} {
		if req.Method == http.MethodPost && strings.Contains(req.URL.Path, group) {
			return false
		}
	}
	return true
}
