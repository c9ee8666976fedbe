package testing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/internal/recording"
	"github.com/espalier-dev/espalier/testing/internal/replay"
)

// External is something beside the cluster that the code under test works with, such as a service in a cloud. A row
// lists what it uses in its Externals, so that replays start from the same state and compare how they leave it:
//
//	buckets := &fakeBuckets{}
//	...
//	Externals: []rtesting.External{{Reset: buckets.clear, End: func() any { return buckets.names() }}},
//
// Its calls have faults of their own if they are made with [HTTP] or [Call]. A row that makes such calls and lists no
// Externals notes it in its log: what the calls do is not compared then.
type External struct {
	// Reset brings it to its state before the first request. Required.
	Reset func()
	// End returns its state: anything that can be encoded as JSON. Replays must end with the same. Required.
	End func() any
}

// HTTP returns a client whose requests a handler answers. In a row of [NodeTests] and [RootTests] each request is a
// call of the row, such as "POST api.example.com/buckets", and has its faults: one that [Fails] does not reach the
// handler and is answered with 503 Service Unavailable, the other faults are errors of the transport. The request needs
// the context of the code under test, or one that is made of it.
func HTTP(handler http.Handler) *http.Client { return &http.Client{Transport: transport{handler}} }

// transport answers requests by a handler.
type transport struct{ handler http.Handler }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	if err := ctx.Err(); err != nil {
		if request.Body != nil {
			err = errors.Join(err, request.Body.Close())
		}
		return nil, err
	}
	sent := request.Clone(ctx)
	sent.RequestURI = request.URL.RequestURI()
	if request.Body != nil {
		body, err := io.ReadAll(request.Body)
		if err := errors.Join(err, request.Body.Close()); err != nil {
			return nil, err
		}
		sent.Body = io.NopCloser(bytes.NewReader(body))
	} else {
		sent.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	err := Call(ctx, request.Method+" "+request.URL.Host+request.URL.Path, func() error {
		t.handler.ServeHTTP(recorder, sent)
		return nil
	})
	switch {
	case errors.Is(err, fault.ErrFails):
		http.Error(recorder, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		return nil, err
	}
	response := recorder.Result()
	response.Request = request
	return response, nil
}

// Call calls do, for code that talks to something else than a cluster and not by [HTTP]: wrap the calls of a fake in
// it. In a row of [NodeTests] and [RootTests] it is a call of the row by the name, and has its faults: do is not
// called, or its answer is lost. In a simulation, it is a request of the operator. Elsewhere Call does nothing but to
// call do. The error is that of do or of the fault.
func Call(ctx context.Context, name string, do func() error) error {
	return fault.CallOutside(ctx, name, do)
}

// outside is what [Call] needs of the run of a row.
type outside struct {
	world *replay.World
	calls *outsideCalls
}

// Do implements [fault.Caller].
func (o outside) Do(ctx context.Context, name string, do func() error) error {
	o.calls.note(name)
	return o.world.Do(ctx, name, do)
}

// outsideCalls are the names of the calls of a row that [Call] made. It is safe for concurrent use.
type outsideCalls struct {
	mu    sync.Mutex
	names map[string]bool
}

func (c *outsideCalls) note(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names == nil {
		c.names = map[string]bool{}
	}
	c.names[name] = true
}

// unobserved says which calls had effects that nothing compares, since the row has no Externals; empty if it has, or if
// there were no calls.
func (c *outsideCalls) unobserved(externals []External) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(externals) > 0 || len(c.names) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(c.names))
	more := ""
	if n := len(names) - maxOthers; n > 0 {
		names, more = names[:maxOthers], fmt.Sprintf(" and %d more", n)
	}
	const text = "the row has no Externals, so replays do not compare what these calls do: %q%s"
	return fmt.Sprintf(text, names, more)
}

// As returns a client of the cluster of a config for somebody else, such as "kubelet", who writes as the field manager
// of that name. Its calls are neither recorded nor given to reactors, and have no faults. As panics if the Client of
// the config is not the one that the harness made.
func As(c reconcilers.Config, manager string) client.Client {
	recorded, ok := c.Client.(*recording.Client)
	if !ok {
		panic(fmt.Sprintf("As: want the config of a row, but its client is a %T", c.Client))
	}
	return recorded.As(manager)
}
