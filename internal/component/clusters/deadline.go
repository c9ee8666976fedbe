package clusters

import (
	"context"
	"io"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// requestTimeout limits a request and its answer, unless the config of the operator's cluster has a timeout.
const requestTimeout = 30 * time.Second

// deadline ends requests that take too long, except for requests that last by design.
type deadline struct {
	next    http.RoundTripper
	timeout time.Duration
}

var _ utilnet.RoundTripperWrapper = (*deadline)(nil)

func withDeadline(timeout time.Duration) func(next http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return &deadline{next: next, timeout: timeout}
	}
}

func (d *deadline) RoundTrip(request *http.Request) (*http.Response, error) {
	if lasts(request) {
		return d.next.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeout(request.Context(), d.timeout)
	response, err := d.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &body{ReadCloser: response.Body, cancel: cancel}
	return response, nil
}

// WrappedRoundTripper gives client-go the transport underneath.
func (d *deadline) WrappedRoundTripper() http.RoundTripper { return d.next }

// lasts reports whether a request is a watch, follows a log, or leaves HTTP.
func lasts(request *http.Request) bool {
	query := request.URL.Query()
	// The API server reads parameters in this way.
	isTrue := func(values []string) bool { return len(values) > 0 && values[0] != "0" && values[0] != "false" }
	return request.Header.Get("Upgrade") != "" || isTrue(query["watch"]) || isTrue(query["follow"])
}

// body ends the context of its request once the answer is read or closed.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.cancel()
	}
	return n, err
}

func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
