package shard_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/shard"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

const deadline = 10 * time.Second

func newShard(t *testing.T) *shard.Shard {
	t.Helper()
	s, err := shard.New("ring", "one", deadline)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// server is a transport that counts what arrives, and waits while it is blocked. It answers with a status, by default
// OK, and not at all if that is negative.
type server struct {
	arrived int
	block   chan struct{}
	status  int
}

var errConnection = errors.New("the connection is lost")

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.arrived++
	if s.block != nil {
		select {
		case <-s.block:
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
	if s.status < 0 {
		return nil, errConnection
	}
	return &http.Response{StatusCode: cmp.Or(s.status, http.StatusOK), Body: http.NoBody, Request: req}, nil
}

// body is a body that notes that it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

// guarded returns a client of the server whose transport is guarded.
func guarded(t *testing.T, s *shard.Shard, to *server) http.RoundTripper {
	t.Helper()
	config := &rest.Config{Host: "http://server", Transport: to}
	shard.Guard(s, config)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

func request(t *testing.T, method, path string) (*http.Request, *body) {
	t.Helper()
	content := &body{Reader: strings.NewReader("{}")}
	req, err := http.NewRequest(method, "http://server"+path, content)
	if err != nil {
		t.Fatal(err)
	}
	return req, content
}

func TestNothingIsWrittenWithoutTheLease(t *testing.T) {
	const (
		widgets = "/apis/test.espalier.dev/v1/namespaces/ns/widgets"
		reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	)
	synctest.Test(t, func(t *testing.T) {
		s, to := newShard(t), &server{}
		transport := guarded(t, s, to)
		for _, step := range []struct {
			name, method, path string
			before             func()
			refused            bool
		}{
			{name: "a write before the Lease was held", method: http.MethodPost, path: widgets, refused: true},
			{name: "a read before the Lease was held", method: http.MethodGet, path: widgets},
			{name: "a review before the Lease was held", method: http.MethodPost, path: reviews},
			{name: "a write with the Lease", method: http.MethodPatch, path: widgets, before: func() { shard.Hold(s) }},
			{name: "a write just in time", method: http.MethodPut, path: widgets,
				before: func() { time.Sleep(deadline - time.Nanosecond) }},
			{name: "a write too late", method: http.MethodDelete, path: widgets, refused: true,
				before: func() { time.Sleep(time.Nanosecond) }},
			{name: "a read too late", method: http.MethodGet, path: widgets},
			{name: "a write after another renewal", method: http.MethodPost, path: widgets,
				before: func() { shard.Hold(s) }},
		} {
			if step.before != nil {
				step.before()
			}
			req, content := request(t, step.method, step.path)
			before := to.arrived
			_, err := transport.RoundTrip(req)
			if refused := errors.Is(err, shard.ErrNotHeld); refused != step.refused || (to.arrived == before) != refused {
				t.Errorf("%s: the error is %v, and %d requests arrived, want that it is refused: %t",
					step.name, err, to.arrived-before, step.refused)
			}
			if step.refused && !content.closed {
				t.Errorf("%s: the body of a refused request is open, want it closed", step.name)
			}
		}
	})
}

// A write does not end when its caller gives it up, and one without an answer may still arrive: until then its resource
// is not settled, and the Lease is not released.
func TestAWriteWithoutAnAnswerMayArrive(t *testing.T) {
	theirs := shard.Resource{GroupKind: schema.GroupKind{Kind: "Widget"}, NamespacedName: types.NamespacedName{Name: "theirs"}}
	ours := shard.Resource{GroupKind: schema.GroupKind{Kind: "Widget"}, NamespacedName: types.NamespacedName{Name: "ours"}}
	for name, test := range map[string]struct {
		// givenUp is when the caller gives the write up, and answered when it is answered; zero for never.
		givenUp, answered time.Duration
		status            int
		took              time.Duration
		settled           bool
	}{
		"answered":                   {answered: time.Second, took: time.Second, settled: true},
		"answered after that":        {givenUp: time.Second, answered: 2 * time.Second, took: 2 * time.Second, settled: true},
		"given up, never answered":   {givenUp: time.Second, took: 11 * time.Second},
		"given up before it is sent": {givenUp: -1, settled: true},
		"the connection is lost":     {answered: time.Second, status: -1, took: time.Second},
		"not finished in time":       {answered: time.Second, status: http.StatusGatewayTimeout, took: time.Second},
		"refused":                    {answered: time.Second, status: http.StatusConflict, took: time.Second, settled: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, to := newShard(t), &server{block: make(chan struct{}), status: test.status}
				transport := guarded(t, s, to)
				shard.Hold(s)
				ctx, giveUp := context.WithCancel(shard.WithResource(t.Context(), ours))
				defer giveUp()
				switch {
				case test.givenUp < 0:
					giveUp()
				case test.givenUp > 0:
					time.AfterFunc(test.givenUp, giveUp)
				}
				if test.answered > 0 {
					time.AfterFunc(test.answered, func() { close(to.block) })
				}
				req, _ := request(t, http.MethodPost, "/api/v1/namespaces")
				began := time.Now()
				if resp, err := transport.RoundTrip(req.WithContext(ctx)); err == nil {
					_ = resp.Body.Close() // there is none
				}
				if took := time.Since(began); took != test.took {
					t.Errorf("the write took %v, want %v", took, test.took)
				}
				for _, wait := range []time.Duration{time.Minute - time.Nanosecond, time.Nanosecond} {
					if err := shard.Settled(s, ours); (err == nil) != test.settled {
						t.Errorf("after %v its resource has the error %v, want that it is settled: %t", time.Since(began), err, test.settled)
					}
					if err := shard.Settled(s, theirs); err != nil {
						t.Errorf("another resource has the error %v, want none", err)
					}
					time.Sleep(wait)
				}
				if err := shard.Settled(s, ours); err != nil {
					t.Errorf("after a minute its resource has the error %v, want none", err)
				}
			})
		})
	}
}

// A process that stood still in a request of a resource does not go on with it: the answer comes too late.
func TestAnAnswerAfterTheLeaseIsRefused(t *testing.T) {
	ours := shard.Resource{GroupKind: schema.GroupKind{Kind: "Widget"}, NamespacedName: types.NamespacedName{Name: "ours"}}
	for name, test := range map[string]struct {
		method  string
		of      shard.Resource
		after   time.Duration
		refused bool
	}{
		"a write in time":         {http.MethodPatch, ours, deadline - time.Nanosecond, false},
		"a write too late":        {http.MethodPatch, ours, deadline, true},
		"a read in time":          {http.MethodGet, ours, deadline - time.Nanosecond, false},
		"a read too late":         {http.MethodGet, ours, deadline, true},
		"a read for no resource":  {http.MethodGet, shard.Resource{}, deadline, false},
		"a write for no resource": {http.MethodPatch, shard.Resource{}, deadline, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, to := newShard(t), &server{block: make(chan struct{})}
				transport := guarded(t, s, to)
				shard.Hold(s)
				time.AfterFunc(test.after, func() { close(to.block) })
				req, _ := request(t, test.method, "/apis/test.espalier.dev/v1/namespaces/ns/widgets/ours")
				resp, err := transport.RoundTrip(req.WithContext(shard.WithResource(t.Context(), test.of)))
				if refused := errors.Is(err, shard.ErrNotHeld); refused != test.refused || to.arrived != 1 {
					t.Errorf("the error is %v, and %d requests arrived, want that one arrives and its answer is refused: %t",
						err, to.arrived, test.refused)
				}
				if err == nil {
					_ = resp.Body.Close() // there is none
				}
				if err := shard.Settled(s, ours); err != nil {
					t.Errorf("the resource has the error %v, want none: the write was answered", err)
				}
			})
		})
	}
}

func TestARequestOfAResourceNeedsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t)
		if _, err := shard.Begin(s); !errors.Is(err, shard.ErrNotHeld) {
			t.Errorf("a request before the Lease was held gives %v, want ErrNotHeld", err)
		}
		shard.Hold(s)
		end, err := shard.Begin(s)
		if err != nil {
			t.Fatalf("a request with the Lease gives %v, want none", err)
		}
		end()
		time.Sleep(deadline)
		if _, err := shard.Begin(s); !errors.Is(err, shard.ErrNotHeld) {
			t.Errorf("a request after the deadline gives %v, want ErrNotHeld", err)
		}
	})
}

func TestNamesAreThoseOfLeasesAndLabels(t *testing.T) {
	for _, test := range []struct {
		ring, name string
		ok         bool
	}{
		{"ring", "pod-1", true},
		{"", "pod-1", false},
		{"ring", "", false},
		{strings.Repeat("r", 63), strings.Repeat("n", 63), true},
		{strings.Repeat("r", 64), "pod-1", false},
		{"ring", strings.Repeat("n", 64), false},
		{"ring", "Pod", false},
		{"ring", "host.example.com", true},
		{"a/b", "pod-1", false},
	} {
		_, err := shard.New(test.ring, test.name, deadline)
		if (err == nil) != test.ok {
			t.Errorf("the shard %q of the ring %q gives the error %v, want that it is one: %t",
				test.name, test.ring, err, test.ok)
		}
	}
}
