package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
	// ended says why nothing is let through any more, whatever is renewed; empty if that is not so.
	ended string
	// requests is how many requests of resources run, and writes how many writes are under way.
	requests, writes int
	// unknown has until when writes may still arrive that were not answered, by the resource for which they were sent.
	unknown map[Resource]time.Time
}

const (
	// answerLimit is how long the answer to a write is awaited after its caller has given it up.
	answerLimit = 10 * time.Second
	// arrivalLimit is how long an API server works for a write that has no answer. It is the --request-timeout of an
	// API server, by default.
	arrivalLimit = time.Minute
)

// end has the guard let nothing through any more.
func (g *guard) end(reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended == "" {
		g.ended = reason
	}
}

const (
	endedGiven = "it was given back"
	endedLost  = "another process has written it, or it was deleted"
)

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
	case g.ended != "":
		return fmt.Errorf("%w %q any more, since %s", ErrNotHeld, g.shard, g.ended)
	case g.last.IsZero():
		return fmt.Errorf("%w %q yet", ErrNotHeld, g.shard)
	// The first is by the monotonic clock. The clock of a machine that was suspended stands, that of the wall does not.
	case now.Sub(g.last) >= g.deadline, now.Round(0).Sub(g.last.Round(0)) >= g.deadline:
		return fmt.Errorf("%w %q any more, since it was not renewed for %s", ErrNotHeld, g.shard, g.deadline)
	}
	return nil
}

// heldNow returns an error if the Lease is not held now.
func (g *guard) heldNow() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held(time.Now())
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
	g.ended = endedGiven
	if g.requests > 0 || g.writes > 0 || len(g.unanswered(time.Now())) > 0 {
		return fmt.Errorf("%d requests and %d writes still run, and writes for %d resources were not answered, so the "+
			"Lease %q expires instead of being released", g.requests, g.writes, len(g.unknown), g.shard)
	}
	return nil
}

// unanswered returns until when writes may still arrive that were not answered. The caller holds the mutex.
func (g *guard) unanswered(now time.Time) map[Resource]time.Time {
	maps.DeleteFunc(g.unknown, func(_ Resource, until time.Time) bool { return !now.Before(until) })
	return g.unknown
}

// failed notes that a write for a resource was not answered.
func (g *guard) failed(of Resource, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unknown == nil {
		g.unknown = map[Resource]time.Time{}
	}
	g.unanswered(now)
	g.unknown[of] = now.Add(arrivalLimit)
}

// settled returns an error if a write for a resource may still arrive.
func (g *guard) settled(of Resource, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	until, ok := g.unanswered(now)[of]
	if !ok {
		return nil
	}
	return fmt.Errorf("a write for %s was not answered and may still arrive, until %s", of,
		until.UTC().Format(time.RFC3339))
}

// Guard has the clients that are made of config refuse to write while the shard does not hold its Lease.
func Guard(s *Shard, config *rest.Config) {
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return &guarded{inner: inner, guard: s.guard} })
}

// guarded is a transport that refuses writes while the Lease is not held, and answers that a request of a resource gets
// when it is not held any more. It knows of each other write whether it was answered. So a write that was sent does not
// end when its caller gives it up: the answer is awaited, for as long as answerLimit. A write that has none then, or
// whose connection is lost, may arrive for as long as arrivalLimit.
type guarded struct {
	inner http.RoundTripper
	guard *guard
}

// RoundTrip implements [http.RoundTripper].
func (t *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isWrite(req) {
		resp, err := t.inner.RoundTrip(req)
		return t.usable(req, resp, err)
	}
	if err := context.Cause(req.Context()); err != nil {
		return notSent(req, err)
	}
	end, err := t.guard.count(&t.guard.writes)
	if err != nil {
		t.guard.counters.refused.Add(1)
		return notSent(req, err)
	}
	defer end()
	resp, err := awaitAnswer(t.inner, req)
	// An API server answers with an error of its own what it has not finished in time.
	if err != nil || resp.StatusCode >= http.StatusInternalServerError {
		t.guard.failed(resourceOf(req.Context()), time.Now())
	}
	return t.usable(req, resp, err)
}

// usable returns what came of a request, or an error if that was for a resource and the Lease is not held any more. A
// process that stood still goes on when it has the answer. What it does next may be outside of the cluster, where no
// transport refuses it.
func (t *guarded) usable(req *http.Request, resp *http.Response, err error) (*http.Response, error) {
	if err != nil || resourceOf(req.Context()) == (Resource{}) {
		return resp, err
	}
	if err := t.guard.heldNow(); err != nil {
		_ = resp.Body.Close() // nothing of it is read
		return nil, fmt.Errorf("the answer to %s came too late: %w", req.Method, err)
	}
	return resp, nil
}

func notSent(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close() // nothing of it was read
	}
	return nil, fmt.Errorf("%s was not sent: %w", req.Method, err)
}

// awaitAnswer sends a request, and does not give it up before answerLimit is over.
func awaitAnswer(inner http.RoundTripper, req *http.Request) (*http.Response, error) {
	caller := req.Context()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(caller))
	stop := context.AfterFunc(caller, func() {
		time.AfterFunc(answerLimit, func() { cancel(context.Cause(caller)) })
	})
	resp, err := inner.RoundTrip(req.WithContext(ctx))
	if err != nil {
		stop()
		cancel(nil)
		return resp, err
	}
	resp.Body = &closing{ReadCloser: resp.Body, closed: func() { stop(); cancel(nil) }}
	return resp, nil
}

// closing is a body that tells when it is closed.
type closing struct {
	io.ReadCloser
	closed func()
}

func (c *closing) Close() error {
	defer c.closed()
	return c.ReadCloser.Close()
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
