package controlplane

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Request is one kind of request to an API server.
type Request struct {
	// Verb is the verb of Kubernetes: get, list, watch, create, update, patch, delete or deletecollection. For a path
	// that names no resource, such as /healthz, it is the method in lower case.
	Verb string
	// Path is the path of the URL, without the query.
	Path string
}

// String returns a line such as "get /api/v1/namespaces/default".
func (r Request) String() string { return r.Verb + " " + r.Path }

// Requests counts the requests that one client, or several that share a configuration, have sent: each attempt, whether
// it was answered or not. It is safe for concurrent use.
type Requests struct {
	mu     sync.Mutex
	counts map[Request]int
	// unanswered is how many were sent that have no answer yet.
	unanswered int
}

// CountRequests returns a copy of config whose clients are counted, and the counters.
func CountRequests(config *rest.Config) (*rest.Config, *Requests) {
	requests := &Requests{counts: map[Request]int{}}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counter{next: next, requests: requests} })
	return config, requests
}

// Total returns the number of requests without watches. Watches stay open, and are opened again after a time-out even
// if the client is idle.
func (r *Requests) Total() int { return r.sum(func(q Request) bool { return q.Verb != "watch" }) }

// Unanswered returns the number of requests without watches that have no answer yet.
func (r *Requests) Unanswered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unanswered
}

// Watches returns the number of watches that were opened.
func (r *Requests) Watches() int { return r.sum(func(q Request) bool { return q.Verb == "watch" }) }

// Writes returns the number of requests that change something.
func (r *Requests) Writes() int {
	return r.sum(func(q Request) bool {
		switch q.Verb {
		case "create", "update", "patch", "delete", "deletecollection":
			return true
		}
		return false
	})
}

func (r *Requests) sum(include func(Request) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := 0
	for request, n := range r.counts {
		if include(request) {
			total += n
		}
	}
	return total
}

// Counts returns a copy of the counters, which include watches.
func (r *Requests) Counts() map[Request]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}

// Reset sets all counters to zero, but that of Unanswered.
func (r *Requests) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.counts)
}

// String returns a line with the count of each kind of request, ordered by path and verb, for the messages of tests.
func (r *Requests) String() string {
	counts := r.Counts()
	if len(counts) == 0 {
		return "no requests"
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b Request) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Verb, b.Verb))
	})
	lines := make([]string, len(kinds))
	for i, kind := range kinds {
		lines[i] = fmt.Sprintf("%d × %s", counts[kind], kind)
	}
	return strings.Join(lines, "\n")
}

func (r *Requests) sent(kind Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[kind]++
	if kind.Verb != "watch" {
		r.unanswered++
	}
}

func (r *Requests) answered(kind Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kind.Verb != "watch" {
		r.unanswered--
	}
}

// counter counts each request before it is sent.
type counter struct {
	next     http.RoundTripper
	requests *Requests
}

func (c *counter) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	kind := Request{
		Verb: verbOf(request.Method, request.URL.Path, query.Get("watch")),
		Path: request.URL.Path,
	}
	c.requests.sent(kind)
	defer c.requests.answered(kind)
	return c.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the transport that it has to close.
func (c *counter) WrappedRoundTripper() http.RoundTripper { return c.next }

// verbOf returns the Kubernetes verb of a request.
func verbOf(method, path, watch string) string {
	object, ok := namesObject(path)
	if !ok {
		return strings.ToLower(method)
	}
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if object {
			return "delete"
		}
		return "deletecollection"
	case http.MethodGet:
		switch {
		case watch == "true" || watch == "1":
			return "watch"
		case !object:
			return "list"
		}
	}
	return strings.ToLower(method)
}

// namesObject reports whether a path names one object or the collection of a resource; ok is false when it is neither.
// These are the paths, after /api/VERSION or /apis/GROUP/VERSION, each also with a subresource behind NAME:
//
//	/RESOURCE, /RESOURCE/NAME, /namespaces/NAMESPACE/RESOURCE, /namespaces/NAMESPACE/RESOURCE/NAME
func namesObject(path string) (object, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return false, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	return len(parts) > 1, true
}
