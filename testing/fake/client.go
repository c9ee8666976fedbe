package fake

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/store"
)

// AddIndex adds an index to a client of this package, for code that adds indexes to a cache at runtime. It returns an
// error if the field is indexed already, or the type of the object is not in the scheme. It panics if the client is
// neither one of this package nor a wrapper with a method Unwrap around one.
func AddIndex(c client.Client, obj runtime.Object, field string, extractValue client.IndexerFunc) error {
	return mustUnwrap("AddIndex", c).AddIndex(obj, field, extractValue)
}

// CollectGarbage does at once what the controllers of a cluster do after a while: it deletes dependents whose owners
// are gone, ends foreground and orphan deletions, empties and removes namespaces that are being deleted, and removes
// CustomResourceDefinitions that are being deleted, with their objects. It reports whether something changed. An object
// with a finalizer of somebody else stays. It panics as [AddIndex] does. It takes the client of an ExpectConfig of
// package testing that has UseFake, too.
func CollectGarbage(c client.Client) (changed bool) {
	return mustUnwrap("CollectGarbage", c).Store().CollectGarbage()
}

// mustUnwrap returns the client of a store that c is or wraps, such as behind interceptors.
func mustUnwrap(function string, c client.Client) *store.Client {
	for {
		switch wrapped := c.(type) {
		case *store.Client:
			return wrapped
		case interface{ Unwrap() client.WithWatch }:
			c = wrapped.Unwrap()
		default:
			panic(function + " needs a client that was built by this package")
		}
	}
}
