package clusters

import (
	"net/http"
	"time"
)

// RequestTimeout is how long a request may take.
const RequestTimeout = requestTimeout

// WithTimeout returns a transport that limits requests to another time than [RequestTimeout].
func WithTimeout(next http.RoundTripper, timeout time.Duration) http.RoundTripper {
	return withDeadline(timeout)(next)
}

// Kept returns how many clusters a pool keeps.
func (p *Pool) Kept() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pooled)
}
