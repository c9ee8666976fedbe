// Package manifest makes of the objects that a generator returns what the rest of the engine works with: checked, complete, and
// with a digest. It keeps objects as they were generated: no field is lost by passing through a Go type.
//
// What a generator returns is not trusted: whatever is wrong with an object is an error that names it, never a panic. Errors
// hold no values of Secrets.
package manifest

import (
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/plan"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options are what preparing objects depends on besides the objects.
type Options struct {
	// Prefix is that of the component's own annotations.
	Prefix string
	// Namespace is given to namespaced objects that have none.
	Namespace string
	// ComponentDigest identifies the state of the component.
	ComponentDigest string
	// Policies are in force where an object has no annotation. An empty policy is the default of package apis.
	AdoptionPolicy  apis.AdoptionPolicy
	ReconcilePolicy apis.ReconcilePolicy
	UpdatePolicy    apis.UpdatePolicy
	DeletePolicy    apis.DeletePolicy
	PrunePolicy     apis.PrunePolicy
	// ReapplyInterval is in force where an object has no annotation; 0 or less for never.
	ReapplyInterval time.Duration
	// Scheme finds the kind of typed objects that do not carry it. Optional.
	Scheme *runtime.Scheme
	// Namespaced tells the scope of a kind; known is false if the cluster does not serve it. An error ends the preparation. It
	// is asked at most once for each kind in a request, and not for the kinds that the objects themselves define. Required.
	Namespaced func(kind schema.GroupVersionKind) (namespaced, known bool, err error)
}

// Object is one prepared object, for one request. All that it refers to is shared, between requests too, and must not be changed.
type Object struct {
	// Settings are those of its annotations.
	Settings component.Settings
	// Desired is what the plan knows of it.
	Desired plan.Desired
	// Confidential: it is a Secret. Its digest does not cover the values of its data.
	Confidential bool

	source *source
}
