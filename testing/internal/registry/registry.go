// Package registry says which kinds an API server serves, and what it does to an object of a built-in kind before it
// stores it: how it completes the object, and what it refuses. Each built-in kind has a [Strategy], as in
// k8s.io/apiserver/pkg/registry/rest, whose terms are used here. Custom resources have that of
// k8s.io/apiextensions-apiserver.
//
// Everything here is pure: there is no client, no clock and no store. What concerns the metadata of all kinds alike
// (UID, versions, names to generate, deletion) is the concern of the API server, see package server.
package registry

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Scope says whether the objects of a kind are in namespaces.
type Scope int

const (
	// AnyScope is the scope of a Go type without a definition: nothing says what it is. Objects with and without a
	// namespace are accepted.
	AnyScope Scope = iota
	// Namespaced objects are in a namespace.
	Namespaced
	// Cluster has the objects that are in no namespace.
	Cluster
)

// Type is a kind as an API server serves it.
type Type struct {
	Kind schema.GroupKind
	// Resource is the plural name in URLs, such as configmaps.
	Resource string
	Scope    Scope
	// AllowUnconditionalUpdate is set if an update without a resource version is made whatever the version is.
	AllowUnconditionalUpdate bool
	// AllowCreateOnUpdate is set if an update creates the object if it does not exist.
	AllowCreateOnUpdate bool
	// WithoutGeneration is set if the objects have no generation. It then stays what the client says.
	WithoutGeneration bool
	// Versions are served. Objects of any of them are converted to another by changing their apiVersion. There is at
	// least one; the first is the version that is stored.
	Versions []Version
}

// Version is one served version of a [Type].
type Version struct {
	Name string
	// New returns an empty object, in the Go type that the kind has where nobody asks for another: that of k8s.io/api
	// for a built-in kind, that of the scheme for a Go type, and Unstructured for a kind of discovery.
	New func() client.Object
	// HasStatus is set if the status is a subresource.
	HasStatus bool
	// Strategy is that of a built-in kind. It is nil for others, and for definitions.
	Strategy
}

// Strategy is what an API server does to the objects of one version of a built-in kind.
//
// The subresource is "" or "status". Objects have the Go type that [Version].New returns. The caller has set what it
// gives to all kinds alike, such as the name, the UID, and the resource version of an update.
type Strategy interface {
	// PrepareForCreate completes an object to be created, in place: it sets defaults and the generation, and drops the
	// status if it is a subresource.
	PrepareForCreate(obj client.Object)
	// PrepareForUpdate completes an object to be updated, in place: it sets defaults, keeps from old what the request
	// may not write (the status, or all but the status), and raises the generation if something else than metadata and
	// status changed. It does not change old, but the object may share memory with it afterwards. Contents that are as
	// they were get no defaults: old may have been given without.
	PrepareForUpdate(obj, old client.Object, subresource string)
	// Validate returns what is wrong with a completed object to be created, name and labels included.
	Validate(obj client.Object) field.ErrorList
	// ValidateUpdate returns what is wrong with a completed object to be updated. What was wrong with old is accepted:
	// an object may have been given although no API server would store it.
	ValidateUpdate(obj, old client.Object, subresource string) field.ErrorList
}
