package demotest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/demo"
)

// faults makes every second write fail. In turns, the request is lost, its answer is lost, or another client changes
// the object first.
type faults struct {
	next http.RoundTripper
	// admin is the other client.
	admin  *http.Client
	writes atomic.Int64
}

// WithFaults returns a function that wraps the transport of a client.
func WithFaults(t testing.TB, admin *rest.Config) func(http.RoundTripper) http.RoundTripper {
	t.Helper()
	client, err := rest.HTTPClientFor(admin)
	if err != nil {
		t.Fatal(err)
	}
	return func(next http.RoundTripper) http.RoundTripper { return &faults{next: next, admin: client} }
}

var errLost = errors.New("injected: the connection is lost")

func (f *faults) RoundTrip(request *http.Request) (*http.Response, error) {
	// An event that fails is sent again after 10 seconds, by client-go, which does not concern the tree.
	if request.Method == http.MethodGet || strings.HasSuffix(request.URL.Path, "/events") {
		return f.next.RoundTrip(request)
	}
	switch n := f.writes.Add(1); n % 6 {
	case 1:
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, errLost
	case 3:
		response, err := f.next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, response.Body)
		return nil, errors.Join(errLost, response.Body.Close())
	case 5:
		if request.Method == http.MethodPut || request.Method == http.MethodPatch {
			if err := f.annotate(request.Context(), request.URL, n); err != nil {
				return nil, err
			}
		}
	}
	return f.next.RoundTrip(request)
}

// annotate changes the object at a URL, so that a client that read it before gets a conflict.
func (f *faults) annotate(ctx context.Context, object *url.URL, n int64) error {
	change := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, FasterAnnotation, n)
	path := object.Scheme + "://" + object.Host + strings.TrimSuffix(object.Path, "/status")
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, path, strings.NewReader(change))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := f.admin.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// FasterAnnotation is on objects that the other client changed between a read and a write of the operator.
const FasterAnnotation = "example.com/faster"

// RestartAPIServer returns a function for AfterDo. In the steps with the titles it kills the API server while the
// operator works, and returns when the server is back. Do not name all steps: clients wait longer each time that they
// lose their API server.
func RestartAPIServer(
	t testing.TB, env *controlplane.Environment, titles ...string,
) func(context.Context, demo.Step) error {
	t.Helper()
	pending := slices.Clone(titles)
	t.Cleanup(func() {
		if len(pending) > 0 {
			t.Errorf("the steps %q have passed without a kill of the API server, want one in each", pending)
		}
	})
	return func(_ context.Context, step demo.Step) error {
		i := slices.Index(pending, step.Title)
		if i < 0 {
			return nil
		}
		pending = slices.Delete(pending, i, i+1)
		return errors.Join(env.StopAPIServer(), env.StartAPIServer())
	}
}
