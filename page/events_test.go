package page_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/page"
)

// loopbackServer serves a page in a bubble of testing/synctest, where there are no sockets: each connection is a pipe,
// which has no buffer, so that a write waits until the other side reads.
type loopbackServer struct {
	*http.Server
	client      *http.Client
	connections chan net.Conn
	closed      chan struct{}
}

func newServer(t *testing.T, w *world) *loopbackServer {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/espalier/", w.page)
	s := &loopbackServer{
		Server:      &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute},
		connections: make(chan net.Conn),
		closed:      make(chan struct{}),
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return s.dial() }
	transport := &http.Transport{DialContext: dial}
	s.client = &http.Client{Transport: transport}
	done := make(chan error)
	go func() { done <- s.Serve(s) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = s.Server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s
}

func (s *loopbackServer) dial() (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case s.connections <- loopbackConnection{near}:
		return far, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Accept, Close and Addr are those of the listener.
func (s *loopbackServer) Accept() (net.Conn, error) {
	select {
	case connection := <-s.connections:
		return connection, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *loopbackServer) Close() error   { close(s.closed); return nil }
func (s *loopbackServer) Addr() net.Addr { return loopbackAddress }

var loopbackAddress = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}

// loopbackConnection is a connection from this machine.
type loopbackConnection struct{ net.Conn }

func (loopbackConnection) LocalAddr() net.Addr  { return loopbackAddress }
func (loopbackConnection) RemoteAddr() net.Addr { return loopbackAddress }

// open asks for a stream of changes, which ends with the context.
func (s *loopbackServer) open(ctx context.Context, t *testing.T, query, viewer string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/espalier/events?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Name", viewer)
	response, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// listen opens a stream of changes, and returns a function that waits for the data of the next change.
func (s *loopbackServer) listen(t *testing.T, query string) (next func() string) {
	t.Helper()
	response := s.open(t.Context(), t, query, "")
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
		if err := lines.Err(); err != nil {
			return err.Error()
		}
		return "the end"
	}
}

// clients fails the test unless so many clients are connected, when all that happens now has happened.
func clients(t *testing.T, w *world, want int) {
	t.Helper()
	synctest.Wait()
	if n := w.page.StreamClients(); n != want {
		t.Fatalf("%d clients are connected, not %d", n, want)
	}
}

// A client is told of what it asks for: of roots, or of one resource.
func TestClientsAreToldOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, page.Options{Access: page.OnLoopback()}, "w", "other")
		w.settle(t, "w")
		server := newServer(t, w)
		overview, resource := server.listen(t, ""), server.listen(t, "root=widgets&namespace=default&name=w")
		clients(t, w, 2)
		w.settle(t, "other")
		if got, want := overview(), `{"root":"widgets"}`; got != want {
			t.Errorf("the page of all roots is told %s, not %s", got, want)
		}
		w.data = "new"
		w.settle(t, "w")
		if got, want := resource(), `{"root":"widgets","namespace":"default","name":"w"}`; got != want {
			t.Errorf("the page of the resource is told %s, not %s", got, want)
		}
	})
}

// A client that does not read is disconnected, and does not hold up requests.
func TestASlowClientIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, page.Options{Access: only{"*"}}, "w")
		connection, err := newServer(t, w).dial()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close() }()
		if _, err := connection.Write([]byte("GET /espalier/events HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := connection.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 10 {
			w.settle(t, "w")
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("a client that does not read holds up requests for %s", took)
		}
		time.Sleep(page.Patience - time.Nanosecond)
		clients(t, w, 1)
		time.Sleep(time.Nanosecond)
		clients(t, w, 0)
	})
}

// A server that shuts down waits for its requests, so streams end by themselves.
func TestStreamsEndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, page.Options{Access: page.OnLoopback()}, "w")
		server := newServer(t, w)
		next := server.listen(t, "")
		clients(t, w, 1)
		told := make(chan string, 1)
		go func() { told <- next() }()
		began := time.Now()
		if err := server.Shutdown(t.Context()); err != nil {
			t.Errorf("the server does not shut down: %v", err)
		}
		// Shutdown looks at its connections twice a second at least.
		if took := time.Since(began); took > time.Second {
			t.Errorf("the server shuts down in %s", took)
		}
		if got := <-told; got != "the end" {
			t.Errorf("the client is told %s", got)
		}
	})
}

// A viewer who opens many pages leaves room for others.
func TestTheNumberOfStreamsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, page.Options{Access: verbs{}}, "w")
		server := newServer(t, w)
		open := func(viewer string) (status int, leave func()) {
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			return server.open(ctx, t, "", viewer).StatusCode, cancel
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
		clients(t, w, 99)
		if status, _ := open("e"); status != http.StatusOK {
			t.Errorf("when there is room again, a stream is answered with %d", status)
		}
	})
}

// A request that a server has accepted before it shuts down may come to its stream afterwards.
func TestAStreamOfAServerThatHasShutDownEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, page.Options{Access: page.OnLoopback()}, "w")
		server := newServer(t, w)
		next := server.listen(t, "")
		if err := server.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		next()
		clients(t, w, 0)
		began, ctx := time.Now(), context.WithValue(t.Context(), http.ServerContextKey, server.Server)
		w.page.ServeHTTP(httptest.NewRecorder(),
			httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/espalier/events", nil))
		if took := time.Since(began); took > 0 {
			t.Errorf("the stream ends after %s", took)
		}
	})
}
