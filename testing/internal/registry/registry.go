// Package registry says what an API server does to an object before it stores it: how it completes the object, and what
// it refuses. Each kind has a [Strategy], as in k8s.io/apiserver/pkg/registry/rest, whose terms are used here.
//
// Everything here is pure: there is no client, no clock and no store. What concerns the metadata of all kinds alike
// (UID, versions, names to generate, deletion) is the store's, see package store.
package registry

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
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
	Strategy
}

// Strategy is what an API server does to the objects of one version of one kind.
//
// The subresource is "" or "status". Objects have the Go type that New returns. The caller has set what it gives to all
// kinds alike, such as the name, the UID, and the resource version of an update.
type Strategy interface {
	// New returns an empty object of the Go type in which the objects are stored: that of k8s.io/api for a built-in
	// kind, that of the scheme for a kind without a definition, and Unstructured for one with a definition.
	New() client.Object
	// HasStatus reports whether the status is a subresource.
	HasStatus() bool
	// CheckFields returns an error that names the fields of a sent object that the kind does not have. It is for
	// requests with the field validation "Strict"; without it such fields are dropped. It does not change the content.
	CheckFields(content map[string]any) error
	// PrepareForCreate completes an object to be created, in place: it sets defaults and the generation, removes
	// unknown fields, and drops the status if it is a subresource.
	PrepareForCreate(obj client.Object)
	// PrepareForUpdate completes an object to be updated, in place: it sets defaults, removes unknown fields, keeps
	// from old what the request may not write (the status, or all but the status), and raises the generation if
	// something else than metadata and status changed. It does not change old, but the object may share memory with it
	// afterwards. Contents of a Go type that are as they were get no defaults: old may have been given without.
	PrepareForUpdate(obj, old client.Object, subresource string)
	// Validate returns what is wrong with a completed object to be created, name and labels included.
	Validate(obj client.Object) field.ErrorList
	// ValidateUpdate returns what is wrong with a completed object to be updated. What was wrong with the metadata of
	// old, or with its contents if it has a Go type, is accepted: an object may have been given although no API server
	// would store it.
	ValidateUpdate(obj, old client.Object, subresource string) field.ErrorList
	// Converter has the merge schema for server-side apply.
	Converter() managedfields.TypeConverter
}
