// Package manifest makes of the objects that a generator returns what the rest of the engine works with: checked, complete, and
// with a digest. It keeps objects as they were generated: no field is lost by passing through a Go type.
package manifest

import (
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/plan"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	ReapplyInterval time.Duration
	// Scheme finds the kind of typed objects that do not carry it. Optional.
	Scheme *runtime.Scheme
	// Namespaced tells the scope of a kind; known is false if the cluster does not serve it. An error ends the preparation.
	Namespaced func(kind schema.GroupVersionKind) (namespaced, known bool, err error)
}

// Object is one prepared object.
type Object struct {
	// Manifest is the object as it is to be written, without the marks of the component. It is shared between requests and must
	// not be changed.
	Manifest *unstructured.Unstructured
	// Settings are those of its annotations.
	Settings component.Settings
	// Desired is what the plan knows of it.
	Desired plan.Desired
	// Confidential: it is a Secret. Its digest does not cover the values of its data.
	Confidential bool
}

// Cache remembers what was prepared in the last request, so that an object that was generated the same again is not prepared
// again. The zero value is empty. It is used by one request at a time.
type Cache struct{}

// Prepare checks objects and prepares them, in their order. It changes none of them. The error, if any, names all objects that
// are at fault, and nothing is prepared. cache may be nil.
func Prepare(objects []client.Object, options Options, cache *Cache) ([]Object, error) {
	return nil, nil
}
