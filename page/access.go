package page

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/espalier-dev/espalier/internal/loopback"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Access decides who sees what. Its methods are called concurrently.
type Access interface {
	// Viewer returns who makes a request. A request is answered with 401 for [ErrUnauthenticated], with 403 for
	// [ErrRefused], and with 503 for any other error, whose text is not sent.
	Viewer(r *http.Request) (Viewer, error)
}

// Viewer is who looks at the page.
type Viewer interface {
	// Name is the same for all requests of one viewer, and that of no other. It is for limits, and is not shown.
	Name() string
	// May reports whether the viewer may do to an object what a verb of RBAC says, which is get or update: to each of
	// the namespace if the name is empty, and to each of the kind if the namespace is empty too.
	May(ctx context.Context, verb string, kind schema.GroupVersionKind, namespace, name string) (bool, error)
}

var (
	// ErrUnauthenticated means that it is not known who makes a request.
	ErrUnauthenticated = errors.New("a bearer token of the cluster is needed")
	// ErrRefused means that nobody gets an answer to such a request.
	ErrRefused = errors.New("the request is refused")
)

// The verbs that a [Viewer] is asked for.
const (
	verbGet    = "get"
	verbUpdate = "update"
)

// OnLoopback returns an [Access] that allows everything to everybody on this machine, as for a demo on 127.0.0.1. It
// refuses a request that did not arrive at a loopback address or that a proxy has forwarded, whose Host is no name of
// it, or that a page of another origin has made: so no other machine gets in, and no page that a browser shows does.
func OnLoopback() Access { return onLoopback{} }

type onLoopback struct{}

func (onLoopback) Viewer(r *http.Request) (Viewer, error) {
	local, isServed := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	isForwarded := r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != ""
	switch {
	case isForwarded, isServed && !loopback.IsHost(local.String()), !loopback.IsHost(r.Host), !loopback.IsSameOrigin(r):
		return nil, ErrRefused
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr) // without an address all are one viewer
	return everything(host), nil
}

// everything is a viewer who may do everything, by the address.
type everything string

func (e everything) Name() string { return string(e) }

func (everything) May(context.Context, string, schema.GroupVersionKind, string, string) (bool, error) {
	return true, nil
}
