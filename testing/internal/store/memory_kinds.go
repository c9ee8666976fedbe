package store

import (
	"reflect"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier/testing/internal/fieldmanager"
	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// resource is one served version of a kind.
type resource struct {
	registry.Strategy
	kind registry.Type
	gvk  schema.GroupVersionKind
	// stored is the version in which objects are stored.
	stored   schema.GroupVersionKind
	resource schema.GroupResource
	goType   reflect.Type
	fields   *fieldmanager.Manager
	// definition is nil for a kind without one.
	definition *apiextensionsv1.CustomResourceDefinition
}

// newResources returns the served versions of a type by their names.
func newResources(t registry.Type, definition *apiextensionsv1.CustomResourceDefinition) map[string]*resource {
	resources := make(map[string]*resource, len(t.Versions))
	reset := func(subresource string) map[fieldpath.APIVersion]*fieldpath.Set {
		if subresource == scaleSubresource {
			return nil
		}
		return registry.ResetFields(t, subresource)
	}
	for _, v := range t.Versions {
		gvk := t.Kind.WithVersion(v.Name)
		resources[v.Name] = &resource{
			Strategy: v.Strategy, kind: t, gvk: gvk, stored: t.Kind.WithVersion(t.Versions[0].Name),
			resource: schema.GroupResource{Group: t.Kind.Group, Resource: t.Resource},
			goType:   reflect.TypeOf(v.New()), definition: definition,
			fields: fieldmanager.New(gvk, v.Converter, v.New, reset),
		}
	}
	return resources
}

// namespace returns the namespace of an object for which a caller gave one.
func (r *resource) namespace(given string) string {
	if r.kind.Scope == registry.Cluster {
		return ""
	}
	return given
}

// mapping is what a REST mapper says of it, given the objects of the kind. If nothing says what the scope is, it is
// that of the objects.
func (r *resource) mapping(objects table) *meta.RESTMapping {
	mapping := &meta.RESTMapping{
		Resource: r.resource.WithVersion(r.gvk.Version), GroupVersionKind: r.gvk, Scope: meta.RESTScopeNamespace,
	}
	scope := r.kind.Scope
	if scope == registry.Cluster || scope == registry.AnyScope && len(objects) > 0 && objects[0].namespace == "" {
		mapping.Scope = meta.RESTScopeRoot
	}
	return mapping
}

// memoryCatalog has the kinds that need no definition. They never change, so forks share them.
type memoryCatalog struct {
	*catalog
	known sync.Map // of schema.GroupKind to map[string]*resource, empty for a kind that is not served
}

// versions returns the served versions of a kind; it is empty if there are none.
func (c *memoryCatalog) versions(kind schema.GroupKind) map[string]*resource {
	if known, ok := c.known.Load(kind); ok {
		return known.(map[string]*resource)
	}
	served := map[string]*resource{}
	if found, ok := c.find(kind); ok {
		served = newResources(found, nil)
	}
	known, _ := c.known.LoadOrStore(kind, served)
	return known.(map[string]*resource)
}

// versions returns the served versions of a kind. The caller holds the lock.
func (s *memory) versions(kind schema.GroupKind) map[string]*resource {
	if versions, ok := s.state.definitions[kind]; ok {
		return versions
	}
	return s.catalog.versions(kind)
}

// resource returns what serves a kind, or the error of a REST mapper. The caller holds the lock.
func (s *memory) resource(gvk schema.GroupVersionKind) (*resource, error) {
	if r, ok := s.versions(gvk.GroupKind())[gvk.Version]; ok {
		return r, nil
	}
	return nil, noMatch(gvk.GroupKind(), gvk.Version)
}

// served are the kinds that are served now. The caller holds the lock.
func (s *memory) served() []map[string]*resource {
	kinds := s.catalog.all()
	for kind := range s.state.definitions {
		kinds[kind] = true
	}
	var served []map[string]*resource
	for kind := range kinds {
		if versions := s.versions(kind); len(versions) > 0 {
			served = append(served, versions)
		}
	}
	return served
}

func newMemoryCatalog(options Options) *memoryCatalog {
	return &memoryCatalog{catalog: newCatalog(options)}
}
