package store

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Intercept stands between a client and the store. Do makes the call; without it the call has no effect. The error is
// what the caller gets. The caller's object is filled after that, and only if there is no error. There must be an error
// if the call was not made, or failed.
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
	// UID is that of the precondition of a delete; empty if there is none.
	UID    types.UID
	DryRun bool
	// Live is set for a read that does not come from a cache.
	Live bool
}

// Writes reports whether the call is neither a read nor a dry run.
func (c Call) Writes() bool {
	return c.Verb != Get && c.Verb != List && c.Verb != Watch && !c.DryRun
}

// String returns the call as a table row names it, such as "create ConfigMap ns/one" or "update App/status ns/a". A
// list of all namespaces has the kind alone, such as "list ConfigMap". Live reads and dry runs end with "(live)" and
// "(dry run)".
func (c Call) String() string {
	words := []string{string(c.Verb), c.Kind.Kind}
	if c.Subresource != "" {
		words[1] += "/" + c.Subresource
	}
	switch {
	case c.Name != "":
		words = append(words, slashed(c.Namespace, c.Name))
	case c.Namespace != "":
		words = append(words, c.Namespace)
	}
	if c.Live {
		words = append(words, "(live)")
	}
	if c.DryRun {
		words = append(words, "(dry run)")
	}
	return strings.Join(words, " ")
}
