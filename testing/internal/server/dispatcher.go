package server

import (
	"net/http"
	"strings"
)

// dispatcher calls the handler at the root of a path, such as /api/v1 and /apis/apps/v1, and next if there is none.
// Handlers of groups, such as /apis/apps, take their own path alone.
type dispatcher struct {
	roots map[string]http.Handler
	next  http.Handler
}

// ServeHTTP implements [http.Handler].
func (d *dispatcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler, ok := d.roots[rootOfPath(r.URL.Path)]
	if !ok {
		handler = d.next
	}
	handler.ServeHTTP(w, r)
}

// rootOfPath returns the first two parts of a path under /api, and the first three of one under /apis.
func rootOfPath(path string) string {
	path = strings.TrimSuffix(path, "/")
	parts := 3
	if path == "/api" || strings.HasPrefix(path, "/api/") {
		parts = 2
	}
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		if parts--; parts == 0 {
			return path[:i]
		}
	}
	return path
}
