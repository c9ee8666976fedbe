package observe

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// trouble says what an error means for the knowledge of a type.
type trouble int

const (
	// none: there is no error.
	none trouble = iota
	// unserved: the API server may not serve the type at all.
	unserved
	// forbidden: we may not ask.
	forbidden
	// unsupported: the API does not offer it.
	unsupported
	// unavailable: the API answers, or lets others answer, that it cannot serve now, or not in time.
	unavailable
	// busy: the API server has too much to do. It tells nothing about the type.
	busy
	// unreachable: nobody answered. It tells nothing about the type.
	unreachable
)

// diagnose tells what an error of a request about a type, rather than about one object, means.
func diagnose(err error) trouble {
	if err == nil {
		return none
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
	case http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return unsupported
	case http.StatusTooManyRequests:
		return busy
	}
	return unavailable
}

// watching says why a type cannot be watched. verb is "listed" or "watched", whichever failed.
func (t trouble) watching(verb string) string {
	switch t {
	case forbidden:
		return "may not be " + verb + ": forbidden"
	case unsupported:
		return "cannot be watched: the API does not support it"
	case unreachable:
		return "cannot be watched: the API server cannot be reached"
	}
	return "cannot be watched: the API is unavailable"
}

// reading says why an object cannot be read.
func (t trouble) reading() string {
	switch t {
	case forbidden:
		return "may not be read: forbidden"
	case unsupported:
		return "cannot be read: the API does not support it"
	case unreachable:
		return "cannot be read: the API server cannot be reached"
	}
	return "cannot be read: the API is unavailable"
}

// passing tells that it says nothing about the type, so that what was known before still is.
func (t trouble) passing() bool { return t == busy || t == unreachable }

// persistent tells that asking for other objects of the type would come to the same.
func (t trouble) persistent() bool {
	return t == unserved || t == unavailable || t.passing()
}

// transient tells that a watch is worth being opened again where it ended.
func transient(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}
