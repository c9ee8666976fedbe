// Package manifest prepares the objects that a generator returns for the rest of the engine: they are checked and
// completed, and get a digest. It keeps objects as they were generated: no field is lost by passing through a Go type.
//
// What a generator returns is not trusted. A fault of an object is an error that names it, never a panic. Errors have
// no values of Secrets.
//
// The files in the order in which an object passes them: cache.go finds objects that did not change, content.go and
// normalize.go convert an object to JSON values, sanitize.go and maintained.go check it and remove what is not to be
// written, item.go and digest.go keep what a plan needs of it, types.go finds its scope, and consistency.go compares it
// with the others. source.go makes the manifest again if it is written. [Prepare] is in prepare.go.
package manifest

import (
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/plan"
	"github.com/espalier-dev/espalier/internal/component/secretdata"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options are what preparing objects depends on besides the objects.
type Options struct {
	// Prefix is the prefix of the component's own annotations.
	Prefix string
	// Namespace is given to namespaced objects that have none.
	Namespace string
	// ComponentDigest identifies the state of the component.
	ComponentDigest string
	// The policies apply to objects without an annotation. An empty policy is the default of package apis.
	AdoptionPolicy  apis.AdoptionPolicy
	ReconcilePolicy apis.ReconcilePolicy
	UpdatePolicy    apis.UpdatePolicy
	DeletePolicy    apis.DeletePolicy
	PrunePolicy     apis.PrunePolicy
	// ReapplyInterval applies to objects without an annotation; 0 or less for never.
	ReapplyInterval time.Duration
	// Scheme finds the kind of typed objects that do not say it. Optional.
	Scheme *runtime.Scheme
	// GeneratorScheme finds the kinds that Scheme does not know; see [SchemeOf]. Optional.
	GeneratorScheme *runtime.Scheme
	// Namespaced returns the scope of a kind; known is false if the cluster does not serve it. An error ends the
	// preparation. It is called at most once for each kind in a request, and not for the kinds that the objects
	// themselves define. Required.
	Namespaced func(kind schema.GroupVersionKind) (namespaced, known bool, err error)
}

// Object is one prepared object, for one request. What it refers to is shared, between requests too, and must not be
// changed.
type Object struct {
	// Settings are read from its annotations.
	Settings generator.Settings
	// Desired is what the plan knows.
	Desired plan.Desired
	// Confidential reports whether it is a Secret. Its digest does not cover the values of its data. Data has the
	// fingerprints of the values, by key.
	Confidential bool
	Data         map[string]secretdata.Fingerprint
	// Static reports whether it is ready as soon as it exists.
	Static bool

	source *source
}
