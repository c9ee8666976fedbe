package page_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/page"
)

// listen opens a stream of changes, and returns a function that waits for the data of the next change.
func listen(t *testing.T, server *httptest.Server, query string) (next func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/espalier/events?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("the stream has the type %q", got)
	}
	lines := bufio.NewScanner(response.Body)
	return func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return "the end"
	}
}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not happen that %s", what)
		}
	}
}

func newServer(t *testing.T, w *world) *httptest.Server {
	mux := http.NewServeMux()
	mux.Handle("/espalier/", w.page)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// A client is told of what it asks for: of roots, or of one resource.
func TestClientsAreToldOfChanges(t *testing.T) {
	w := newWorld(t, page.Options{Access: page.OnLoopback()}, "w", "other")
	w.settle(t, "w")
	server := newServer(t, w)
	overview, resource := listen(t, server, ""), listen(t, server, "root=widgets&namespace=default&name=w")
	until(t, "both are connected", func() bool { return w.page.StreamClients() == 2 })
	w.settle(t, "other")
	if got, want := overview(), `{"root":"widgets"}`; got != want {
		t.Errorf("the page of all roots is told %s, not %s", got, want)
	}
	w.data = "new"
	w.settle(t, "w")
	if got, want := resource(), `{"root":"widgets","namespace":"default","name":"w"}`; got != want {
		t.Errorf("the page of the resource is told %s, not %s", got, want)
	}
}

// A client that does not read is disconnected, and does not hold up requests.
func TestASlowClientIsDropped(t *testing.T) {
	w := newWorld(t, page.Options{Access: only{"*"}}, "w")
	w.page.SetPatience(3 * time.Second)
	// A pipe has no buffer, so that a write waits until the client reads.
	near, far := net.Pipe()
	defer func() { _ = far.Close() }()
	server := &http.Server{Handler: w.page, ReadHeaderTimeout: time.Minute}
	listener := &oneConnection{connection: near, closed: make(chan struct{})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	if _, err := far.Write([]byte("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := far.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if n := w.page.StreamClients(); n != 1 {
		t.Fatalf("%d clients are connected, not 1", n)
	}
	for range 10 {
		w.settle(t, "w")
	}
	until(t, "the client is dropped", func() bool { return w.page.StreamClients() == 0 })
	_ = server.Close()
	<-done
}

// oneConnection is a listener with one connection.
type oneConnection struct {
	connection net.Conn
	closed     chan struct{}
}

func (l *oneConnection) Accept() (net.Conn, error) {
	if c := l.connection; c != nil {
		l.connection = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConnection) Close() error   { close(l.closed); return nil }
func (l *oneConnection) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// A server that shuts down waits for its requests, so streams end by themselves.
func TestStreamsEndWithTheServer(t *testing.T) {
	w := newWorld(t, page.Options{Access: page.OnLoopback()}, "w")
	server := newServer(t, w)
	next := listen(t, server, "")
	until(t, "the client is connected", func() bool { return w.page.StreamClients() == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := server.Config.Shutdown(ctx); err != nil {
		t.Errorf("the server does not shut down: %v", err)
	}
	if got := next(); got != "the end" {
		t.Errorf("the client is told %s", got)
	}
}

// A viewer who opens many pages leaves room for others.
func TestTheNumberOfStreamsIsBounded(t *testing.T) {
	w := newWorld(t, page.Options{Access: verbs{}}, "w")
	server := newServer(t, w)
	open := func(viewer string) (status int, leave func()) {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/espalier/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Name", viewer)
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response.StatusCode, cancel
	}
	var leave func()
	for _, viewer := range []string{"a", "b", "c", "d", "e"} {
		for n := range 20 {
			status, cancel := open(viewer)
			if status != http.StatusOK {
				t.Fatalf("the stream %d of %s is answered with %d", n, viewer, status)
			}
			leave = cancel
		}
		if status, _ := open(viewer); status != http.StatusServiceUnavailable {
			t.Errorf("one more stream of %s is answered with %d", viewer, status)
		}
	}
	if status, _ := open("f"); status != http.StatusServiceUnavailable {
		t.Errorf("one more stream is answered with %d", status)
	}
	leave()
	until(t, "a client has left", func() bool { return w.page.StreamClients() == 99 })
	if status, _ := open("e"); status != http.StatusOK {
		t.Errorf("when there is room again, a stream is answered with %d", status)
	}
}

// A request that a server has accepted before it shuts down may come to its stream afterwards.
func TestAStreamOfAServerThatHasShutDownEndsAtOnce(t *testing.T) {
	w := newWorld(t, page.Options{Access: page.OnLoopback()}, "w")
	server := newServer(t, w)
	next := listen(t, server, "")
	if err := server.Config.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	next()
	until(t, "the client is gone", func() bool { return w.page.StreamClients() == 0 })
	ctx, cancel := context.WithTimeout(
		context.WithValue(t.Context(), http.ServerContextKey, server.Config), 30*time.Second)
	defer cancel()
	w.page.ServeHTTP(httptest.NewRecorder(),
		httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/espalier/events", nil))
	if err := ctx.Err(); err != nil {
		t.Errorf("the stream did not end: %v", err)
	}
}
