package clusters_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/component/clusters"
)

func TestWhichRequestsHaveADeadline(t *testing.T) {
	for target, want := range map[string]bool{
		"/api/v1/pods":                                true,
		"/api/v1/pods?watch=false":                    true,
		"/api/v1/pods?watch=0":                        true,
		"/api/v1/pods?labelSelector=watch":            true,
		"/api/v1/pods?watch=true":                     false,
		"/api/v1/pods?watch=1&timeoutSeconds=500":     false,
		"/api/v1/namespaces/a/pods/b/log?follow=true": false,
	} {
		var ctx context.Context
		transport := clusters.WithTimeout(roundTripper(func(r *http.Request) (*http.Response, error) {
			ctx = r.Context()
			return &http.Response{Body: http.NoBody}, nil
		}), clusters.RequestTimeout)
		response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, target, http.NoBody))
		if err != nil {
			t.Fatal(err)
		}
		until, got := ctx.Deadline()
		if got != want {
			t.Errorf("%s: has a deadline: want %t, got %t", target, want, got)
		}
		if left := time.Until(until); got && (left <= 0 || left > clusters.RequestTimeout) {
			t.Errorf("%s: the deadline is in %s, want it within %s", target, left, clusters.RequestTimeout)
		}
		if got && ctx.Err() != nil {
			t.Errorf("%s: the answer cannot be read any more (%v), want the context to last", target, ctx.Err())
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if got && ctx.Err() == nil {
			t.Errorf("%s: the context outlives the answer, want it cancelled", target)
		}
	}
}

// A server that says nothing, or stops half-way, does not hold up the caller.
func TestADeadlineEndsTheRequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half" {
			_, _ = io.WriteString(w, "half")
			w.(http.Flusher).Flush()
		}
		noAnswer(w, r)
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	client := &http.Client{Transport: clusters.WithTimeout(server.Client().Transport, 50*time.Millisecond)}

	request := func(path string) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			return err
		}
		_, err = io.ReadAll(response.Body)
		return errors.Join(err, response.Body.Close())
	}
	for _, path := range []string{"/nothing", "/half"} {
		if err := request(path); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: want the deadline to be exceeded, got %v", path, err)
		}
	}
}
