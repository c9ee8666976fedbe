package clusters

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// UnreachableError means that a cluster does not answer, or rejects the credentials of the kubeconfig. Its text is
// stable, and shows nothing of the kubeconfig.
type UnreachableError struct {
	// Problem is in words that follow the name of the cluster, such as "does not answer: connection refused".
	Problem string
	// RetryAfter is when the cluster is asked again.
	RetryAfter time.Duration
	cause      error
}

// Error implements error.
func (e *UnreachableError) Error() string { return "the cluster " + e.Problem }

// Unwrap returns what the connection failed with; nil if the credentials were rejected.
func (e *UnreachableError) Unwrap() error { return e.cause }

// A cluster that failed is asked again after a second, then after twice as long each time.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// Reachability is whether a cluster answers, as its requests show. After a failure, requests fail at once for a while.
// Then one request is let through: if it is answered, all others are too. So a cluster that hangs holds up one request
// at a time, however many components are deployed there. It is safe for concurrent use.
type Reachability struct {
	// probe makes requests through the transport of the cluster.
	probe rest.Interface

	mu sync.Mutex
	// failure is nil if the cluster answers.
	failure *UnreachableError
	// failures counts those in a row. until is when the next request is let through, and trying says that one is under
	// way.
	failures int
	until    time.Time
	trying   bool
	// answered is when the last answer came.
	answered  time.Time
	listeners map[*func()]bool
}

// Check returns an [UnreachableError] if the cluster does not answer. It makes no request as long as the cluster
// answers, or is not to be asked yet.
func (r *Reachability) Check(ctx context.Context) error {
	if r.Failure() == nil {
		return nil
	}
	err := r.probe.Get().AbsPath("/version").Do(ctx).Error()
	if failure := r.Failure(); failure != nil {
		return failure
	}
	// Any other answer will do.
	if ctx.Err() != nil {
		return err
	}
	return nil
}

// Listen has f called each time the cluster stops answering, or answers again. It is
// not called any more after stop, but for a call that is under way.
func (r *Reachability) Listen(f func()) (stop func()) {
	if r == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listeners == nil {
		r.listeners = map[*func()]bool{}
	}
	r.listeners[&f] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.listeners, &f)
	}
}

// Failure returns an [UnreachableError] if the cluster did not answer when it was asked last. It makes no request.
func (r *Reachability) Failure() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		return nil
	}
	return r.currentFailure(time.Now())
}

// currentFailure returns the failure, with the delay from now on. The lock is held.
func (r *Reachability) currentFailure(now time.Time) *UnreachableError {
	current := *r.failure
	current.RetryAfter = max(r.until.Sub(now), firstPause)
	return &current
}

// admit returns an error if the cluster is not to be asked now. trial is true if the request is the one that finds out
// whether the cluster answers again: it counts as asked until the outcome. A request that lasts is never that one,
// because its answer has no time limit.
func (r *Reachability) admit(now time.Time, lasts bool) (trial bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		return false, nil
	}
	if r.trying || lasts || now.Before(r.until) {
		return false, r.currentFailure(now)
	}
	r.trying = true
	return true, nil
}

// settle notes the outcome of a request that began at that time. problem is empty if it was answered. An error is
// returned unless the cluster answered another request meanwhile.
func (r *Reachability) settle(trial bool, began, now time.Time, problem string, cause error) error {
	r.mu.Lock()
	before := r.failure
	r.trying = r.trying && !trial
	switch {
	case problem == "":
		r.answered, r.failure, r.failures, r.until = now, nil, 0, time.Time{}
	case r.answered.After(began):
		r.mu.Unlock()
		return nil
	case !began.Before(r.until):
		// Requests that ran side by side fail once.
		r.until = now.Add(min(firstPause<<min(r.failures, 10), longestPause))
		r.failures++
		r.failure = &UnreachableError{Problem: problem, cause: cause}
	}
	var failure error
	if r.failure != nil {
		failure = r.currentFailure(now)
	}
	var listeners []func()
	if (before == nil) != (r.failure == nil) {
		for listener := range r.listeners {
			listeners = append(listeners, *listener)
		}
	}
	r.mu.Unlock()
	for _, listener := range listeners {
		listener()
	}
	return failure
}

// abort notes that a request ended without an outcome.
func (r *Reachability) abort(trial bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trying = r.trying && !trial
}

func (r *Reachability) wrap(next http.RoundTripper) http.RoundTripper {
	return &reachabilityTransport{Reachability: r, next: next}
}

// reachabilityTransport learns from the requests of a cluster whether it answers.
type reachabilityTransport struct {
	*Reachability

	next http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = (*reachabilityTransport)(nil)

// RoundTrip uses the clock of the machine, as connections do.
func (t *reachabilityTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	began := time.Now()
	trial, err := t.admit(began, lasts(request))
	if err != nil {
		return nil, err
	}
	response, err := t.next.RoundTrip(request)
	switch {
	case err != nil && request.Context().Err() != nil:
		// The caller gave up.
		t.abort(trial)
		return nil, err
	case err != nil:
		if failure := t.settle(trial, began, time.Now(), problemOf(err), err); failure != nil {
			return nil, failure
		}
		return nil, err
	case response.StatusCode == http.StatusUnauthorized:
		_ = t.settle(trial, began, time.Now(), "rejects the credentials of the kubeconfig", nil)
	default:
		_ = t.settle(trial, began, time.Now(), "", nil)
	}
	return response, nil
}

// WrappedRoundTripper gives client-go the transport underneath.
func (t *reachabilityTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// problemOf says in stable words, without addresses and times, why there was no answer.
func problemOf(err error) string {
	var timeout interface{ Timeout() bool }
	var dns *net.DNSError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var certificate x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	switch {
	case errors.As(err, &authority):
		return "cannot be trusted: its certificate is signed by an unknown authority"
	case errors.As(err, &host):
		return "cannot be trusted: its certificate is for another host"
	case errors.As(err, &certificate) && certificate.Reason == x509.Expired:
		return "cannot be trusted: its certificate has expired or is not valid yet"
	case errors.As(err, &certificate), errors.As(err, &verification):
		return "cannot be trusted: its certificate is not valid"
	case utilnet.IsConnectionRefused(err):
		return "does not answer: connection refused"
	case errors.As(err, &dns):
		return "does not answer: the name of its host cannot be resolved"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "does not answer in time"
	}
	return "does not answer: the connection failed"
}
