package observe

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// errorClass is what an error says about a type.
type errorClass int

const (
	// noError means that there is no error.
	noError errorClass = iota
	// unserved means that the API server may not serve the type at all.
	unserved
	// forbidden means that the request is not allowed.
	forbidden
	// unauthorized means that the API server does not know, or no longer accepts, who asks.
	unauthorized
	// unsupported means that the API does not offer the request.
	unsupported
	// unavailable means that the API cannot serve now, or not in time.
	unavailable
	// busy means that the API server has too much to do. This says nothing about the type.
	busy
	// unreachable means that there was no answer. This says nothing about the type.
	unreachable
)

// classify returns the class of an error of a request about a type, rather than about one object.
func classify(err error) errorClass {
	if err == nil {
		return noError
	}
	if meta.IsNoMatchError(err) {
		return unserved
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		if errors.Is(err, context.DeadlineExceeded) {
			return unavailable
		}
		return unreachable
	}
	switch status.Status().Code {
	case http.StatusNotFound:
		return unserved
	case http.StatusForbidden:
		return forbidden
	case http.StatusUnauthorized:
		return unauthorized
	case http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return unsupported
	case http.StatusTooManyRequests:
		return busy
	}
	return unavailable
}

// readReason says why an object cannot be read, in stable words.
func (c errorClass) readReason() string { return c.reason("read", "read") }

// watchReason says why a type cannot be watched, in stable words. verb is the request that failed: "listed" or
// "watched". A watch is of all namespaces.
func (c errorClass) watchReason(verb string) string {
	return c.reason("watched", verb+" in the whole cluster")
}

func (c errorClass) reason(goal, verb string) string {
	switch c {
	case forbidden:
		return "may not be " + verb + ": forbidden"
	case unauthorized:
		return "cannot be " + goal + ": the API server rejects the credentials"
	case unsupported:
		return "cannot be " + goal + ": the API does not support it"
	case unreachable:
		return "cannot be " + goal + ": the API server cannot be reached"
	}
	return "cannot be " + goal + ": the API is unavailable"
}

// aboutServer reports whether the class says nothing about the type. What was known of the type then still holds.
func (c errorClass) aboutServer() bool { return c == busy || c == unreachable }

// affectsType reports whether requests for other objects of the type would fail in the same way.
func (c errorClass) affectsType() bool {
	return c == unserved || c == unauthorized || c == unavailable || c.aboutServer()
}

// refused reports whether whoever asks lacks the right, or is nobody any more.
func (c errorClass) refused() bool { return c == forbidden || c == unauthorized }
