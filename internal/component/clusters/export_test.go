package clusters

import (
	"net/http"
	"time"
)

// RequestTimeout is how long a request may take.
const RequestTimeout = requestTimeout

// WithTimeout makes what ends requests after another time than requests of a cluster have.
func WithTimeout(next http.RoundTripper, timeout time.Duration) http.RoundTripper {
	return withDeadline(timeout)(next)
}

// Kept is how many clusters a pool keeps.
func (p *Pool) Kept() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.entries)
}
