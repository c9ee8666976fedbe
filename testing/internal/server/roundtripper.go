package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// RoundTripper returns a transport for clients that calls the handler in process, each request in a goroutine of its
// own. As over a network, the handler sees nothing of the client's context but its end, an answer can be read while it
// is written, and a handler that panics breaks the connection. What the handler writes is kept until it is read: a
// client that does not read does not hold up the server.
func RoundTripper(handler http.Handler) http.RoundTripper { return roundTripper{handler: handler} }

type roundTripper struct {
	handler http.Handler
	// values is whether the handler sees the values of the client's context.
	values bool
}

// RoundTrip implements [http.RoundTripper].
func (t roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := request.Context().Err(); err != nil {
		closeBody(request)
		return nil, err
	}
	parent := context.Background()
	if t.values {
		parent = context.WithoutCancel(request.Context())
	}
	ctx, cancel := context.WithCancel(parent)
	w := &responseWriter{
		header: http.Header{}, started: make(chan struct{}), body: &body{more: make(chan struct{}, 1), cancel: cancel},
		done: ctx.Done(),
	}
	release := context.AfterFunc(request.Context(), func() {
		w.body.end(request.Context().Err())
		cancel()
	})
	go func() {
		defer release()
		defer cancel()
		defer closeBody(request)
		t.serve(w, received(request, ctx))
	}()
	select {
	case <-w.started:
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
	if w.status == 0 {
		return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, w.body.failure())
	}
	return w.response(request), nil
}

// serve ends the answer when the handler returns.
func (t roundTripper) serve(w *responseWriter, r *http.Request) {
	defer func() {
		if reason := recover(); reason != nil {
			w.fail(fmt.Errorf("%w: the handler panicked: %v", io.ErrUnexpectedEOF, reason))
		}
	}()
	t.handler.ServeHTTP(w, r)
	w.WriteHeader(http.StatusOK)
	w.body.end(io.EOF)
}

func closeBody(request *http.Request) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
}

// received returns the request as a server gets it.
func received(sent *http.Request, ctx context.Context) *http.Request {
	r := sent.Clone(ctx)
	asReceived(r, sent)
	return r
}

// asReceived sets in a copy of what was sent what a server gets over a connection.
func asReceived(r, sent *http.Request) {
	r.RequestURI = sent.URL.RequestURI()
	r.RemoteAddr = "127.0.0.1:1"
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
	if r.Host == "" {
		r.Host = sent.URL.Host
	}
	r.URL.Scheme, r.URL.Host, r.URL.User = "", "", nil
	if r.Body == nil {
		r.Body = http.NoBody
	}
}

// responseWriter is what the handler writes to. The handler may start to write in another goroutine than the one that
// called it, but not at the same time.
type responseWriter struct {
	header http.Header
	once   sync.Once
	// started is closed when status and sent are set, or when there is no answer and status is 0.
	started chan struct{}
	status  int
	sent    http.Header
	body    *body
	done    <-chan struct{}
}

var (
	_ http.Flusher = &responseWriter{}
	//lint:ignore SA1019 the API server asks for it
	_ http.CloseNotifier = &responseWriter{}
)

// Header implements [http.ResponseWriter].
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *responseWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.started)
	})
}

// Write implements [http.ResponseWriter].
func (w *responseWriter) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.write(data)
}

// Flush implements [http.Flusher].
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }

// CloseNotify implements [http.CloseNotifier].
func (w *responseWriter) CloseNotify() <-chan bool {
	closed := make(chan bool, 1)
	go func() {
		<-w.done
		closed <- true
	}()
	return closed
}

// fail breaks the connection.
func (w *responseWriter) fail(err error) {
	w.body.end(err)
	w.once.Do(func() { close(w.started) })
}

func (w *responseWriter) response(request *http.Request) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: w.sent, Body: w.body, ContentLength: -1, Request: request,
	}
}

// body is the body of an answer: what was written and not read yet. No goroutine waits while it holds the mutex.
type body struct {
	mu   sync.Mutex
	data []byte
	err  error
	// more has an item if something was written since the reader looked.
	more   chan struct{}
	cancel context.CancelFunc
}

var errClosed = errors.New("the client closed the connection")

func (b *body) write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	b.data = append(b.data, data...)
	b.signal()
	return len(data), nil
}

// end sets what the reader gets after all that was written. The first end counts.
func (b *body) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.signal()
}

func (b *body) signal() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}

func (b *body) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	for {
		n, err := b.take(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		<-b.more
	}
}

func (b *body) take(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.data) == 0 {
		return 0, b.err
	}
	n := copy(p, b.data)
	if b.data = b.data[n:]; len(b.data) == 0 {
		b.data = nil
	}
	return n, nil
}

// Close implements [io.Closer]. It ends the request.
func (b *body) Close() error {
	b.end(errClosed)
	b.cancel()
	return nil
}
