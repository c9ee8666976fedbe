package store

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClientOptions are what a [Client] is.
type ClientOptions struct {
	// Scheme converts objects; nil is that of the store.
	Scheme *runtime.Scheme
	// FieldManager is who writes if the call does not say. Empty is "espalier.test".
	FieldManager string
	// View is what reads see; nil sees everything at once, as an APIReader does.
	View *View
	// Intercept is called with each call in the place of making it; nil makes it. It may be called by several
	// goroutines at once.
	Intercept Intercept
}

// Intercept stands between a client and the store. Do makes the call; without it the call has no effect. The error is
// what the caller gets. What was answered stays as it is if an error is returned after do.
type Intercept func(ctx context.Context, call Call, do func() error) error

// Verb is what a call does.
type Verb string

// The verbs are those of the Kubernetes API, in the words of the harness.
const (
	Get              Verb = "get"
	List             Verb = "list"
	Watch            Verb = "watch"
	Create           Verb = "create"
	Update           Verb = "update"
	Patch            Verb = "patch"
	Apply            Verb = "apply"
	Delete           Verb = "delete"
	DeleteCollection Verb = "delete-collection"
)

// Call is one call to a client.
type Call struct {
	Verb Verb
	Kind schema.GroupVersionKind
	// Subresource is empty for the object itself.
	Subresource string
	// Name is empty for a list. For a name to be generated it is the prefix with a star.
	Namespace, Name string
	DryRun          bool
	// Live is set for a read that does not come from a cache.
	Live bool
}

// Writes reports whether the call is neither a read nor a dry run.
func (c Call) Writes() bool { panic("TODO") }

// String returns the call as a table row names it, such as "create ConfigMap ns/one" or "update App/status ns/a".
func (c Call) String() string { panic("TODO") }

// Client is a client of a [Store]. It answers with copies.
type Client struct {
	client.WithWatch // TODO: gone when the methods are there
}

var _ client.WithWatch = (*Client)(nil)

// Client returns a client.
func (s *Store) Client(options ClientOptions) *Client { panic("TODO") }
