package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Transport returns the transport of clients of worlds. A request is served in the goroutine of its caller, with the
// context of the caller, and has ended when the call returns. A watch is served as by [RoundTripper], with the values
// of the caller's context.
func (s *Server) Transport() http.RoundTripper { return transport{s.Handler(), &s.repeats} }

type transport struct {
	handler http.Handler
	repeats *repeats
}

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(request *http.Request) (response *http.Response, err error) {
	if isWatch(request) {
		return roundTripper{handler: t.handler, values: true}.RoundTrip(request)
	}
	defer closeBody(request)
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%s %s: %w: the handler panicked: %v",
				request.Method, request.URL.Path, io.ErrUnexpectedEOF, reason)
		}
	}()
	asked, err := repeatable(request)
	if err != nil {
		return nil, err
	}
	w := &answer{header: http.Header{}}
	if asked != nil {
		w = t.repeats.serve(asked, request, t.serve)
	} else {
		t.serve(request, w)
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: request,
	}, nil
}

func (t transport) serve(request *http.Request, w *answer) {
	t.handler.ServeHTTP(w, lent(request))
	w.WriteHeader(http.StatusOK)
}

// lent returns a request as a server gets it. The caller does nothing with what it shares until the call returns.
func lent(sent *http.Request) *http.Request {
	r := sent.WithContext(sent.Context())
	address := *sent.URL
	r.URL = &address
	asReceived(r, sent)
	return r
}

func isWatch(request *http.Request) bool {
	if !strings.Contains(request.URL.RawQuery, "watch=") {
		return false
	}
	switch request.URL.Query().Get("watch") {
	case "1", "true":
		return true
	}
	return false
}

// answer keeps what a handler writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

var _ http.Flusher = &answer{}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(data []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(data)
}

// Flush implements [http.Flusher].
func (a *answer) Flush() {}
