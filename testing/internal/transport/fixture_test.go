package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/fault"
	"github.com/espalier-dev/espalier/testing/internal/plan"
	"github.com/espalier-dev/espalier/testing/internal/server"
	"github.com/espalier-dev/espalier/testing/internal/transport"
)

const (
	host       = "https://inproc"
	configMaps = "/api/v1/namespaces/shop/configmaps"
	one        = configMaps + "/one"
)

// fixture is a network with a small server.
type fixture struct {
	*testing.T
	*transport.Network
	began time.Time
	mu    sync.Mutex
	// effects are the requests that the server got.
	effects []string
}

// run runs a test in a bubble.
func run(t *testing.T, options transport.Options, test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{T: t, Network: transport.New(options), began: time.Now()}
		f.Serve(server.RoundTripper(http.HandlerFunc(f.handle)))
		test(f)
	})
}

// handle answers a write with 201 and its body, and a read with the path. A watch sends the seconds that have passed,
// from 0 on.
func (f *fixture) handle(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.effects = append(f.effects, r.Method+" "+r.URL.Path)
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Query().Get("watch") != "":
		f.watch(w, r)
	case r.Method == http.MethodGet:
		_, _ = fmt.Fprintln(w, r.URL.Path)
	default:
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	}
}

func (f *fixture) watch(w http.ResponseWriter, r *http.Request) {
	for i := range 20 {
		_, _ = fmt.Fprintln(w, i)
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// had returns the requests that the server got since it was called last.
func (f *fixture) had() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	had := strings.Join(f.effects, ", ")
	f.effects = nil
	return had
}

// answer is what a client gets.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func (f *fixture) newRequest(ctx context.Context, method, path, body string) *http.Request {
	f.Helper()
	r, err := http.NewRequestWithContext(ctx, method, host+path, strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	return r
}

// ask makes a request and reads the answer.
func (f *fixture) ask(c http.RoundTripper, method, path, body string) answer {
	f.Helper()
	response, err := c.RoundTrip(f.newRequest(f.Context(), method, path, body))
	if err != nil {
		return answer{err: err}
	}
	text, err := io.ReadAll(response.Body)
	if err := response.Body.Close(); err != nil {
		f.Error(err)
	}
	return answer{response.StatusCode, response.Header, string(text), err}
}

// open opens a watch and returns its body.
func (f *fixture) open(c http.RoundTripper) io.ReadCloser {
	f.Helper()
	response, err := c.RoundTrip(f.newRequest(f.Context(), http.MethodGet, configMaps+"?watch=1", ""))
	if err != nil {
		f.Fatal(err)
	}
	return response.Body
}

func (f *fixture) get(c http.RoundTripper) answer {
	f.Helper()
	return f.ask(c, http.MethodGet, one, "")
}

// isReset fails the test if the error is not that of a broken connection.
func (f *fixture) isReset(err error) {
	f.Helper()
	if !errors.Is(err, syscall.ECONNRESET) {
		f.Errorf("the error is %v", err)
	}
}

func (f *fixture) isRefused(err error) {
	f.Helper()
	if !errors.Is(err, syscall.ECONNREFUSED) {
		f.Errorf("the error is %v", err)
	}
}

// logged fails the test if the log is not as given.
func (f *fixture) logged(want string) {
	f.Helper()
	if got := f.Log().String(); got != strings.TrimLeft(want, "\n") {
		f.Errorf("the log is\n%s", got)
	}
}

// with returns options with faults by count.
func with(all ...fault.Fault) transport.Options {
	return transport.Options{Plan: plan.Plan{Faults: all}}
}
