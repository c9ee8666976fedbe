package store

import (
	"reflect"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

// catalog has the kinds that need no definition. They never change, so forks share them.
type catalog struct {
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	listed map[schema.GroupKind]registry.Type
	known  sync.Map // of schema.GroupKind to map[string]*resource, empty for a kind that is not served
}

func newCatalog(options Options) *catalog {
	c := &catalog{scheme: options.Scheme, mapper: options.Mapper, listed: map[schema.GroupKind]registry.Type{}}
	for _, list := range options.Resources {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			c.list(version, r)
		}
	}
	return c
}

// list adds a kind of discovery. One that has several versions is stored in the first.
func (c *catalog) list(version schema.GroupVersion, r metav1.APIResource) {
	if strings.Contains(r.Name, "/") {
		return
	}
	listed := registry.FromResource(version, r)
	if before, ok := c.listed[listed.Kind]; ok {
		listed.Versions = append(before.Versions, listed.Versions...)
	}
	c.listed[listed.Kind] = listed
}

// mapped returns a kind that the REST mapper knows, in the versions in which it does.
func (c *catalog) mapped(kind schema.GroupKind) (t registry.Type, ok bool) {
	if c.mapper == nil {
		return t, false
	}
	// Without versions a mapper says only what it prefers, which may be nothing.
	resource, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	known, _ := c.mapper.KindsFor(resource)
	var versions []string
	for _, gvk := range known {
		if gvk.GroupKind() == kind {
			versions = append(versions, gvk.Version)
		}
	}
	mappings, err := c.mapper.RESTMappings(kind, versions...)
	if err != nil {
		return t, false
	}
	for _, m := range mappings {
		found := registry.FromResource(m.GroupVersionKind.GroupVersion(), metav1.APIResource{
			Name: m.Resource.Resource, Kind: kind.Kind, Namespaced: m.Scope.Name() == meta.RESTScopeNameNamespace,
		})
		found.Versions = append(t.Versions, found.Versions...)
		t, ok = found, true
	}
	return t, ok
}

// versions returns the served versions of a kind; it is empty if there are none.
func (c *catalog) versions(kind schema.GroupKind) map[string]*resource {
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

func (c *catalog) find(kind schema.GroupKind) (registry.Type, bool) {
	if found, ok := registry.BuiltIn(kind.WithVersion("")); ok {
		return found, true
	}
	if found, ok := c.listed[kind]; ok {
		return found, true
	}
	if found, ok := c.mapped(kind); ok {
		return found, true
	}
	return registry.FromGoType(kind.WithVersion(""), c.scheme)
}

// all are the kinds of the scheme and of discovery.
func (c *catalog) all() map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{definitionKind: true}
	for kind := range c.scheme.AllKnownTypes() {
		if kind.Version != runtime.APIVersionInternal {
			kinds[kind.GroupKind()] = true
		}
	}
	for kind := range c.listed {
		kinds[kind] = true
	}
	return kinds
}

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition").GroupKind()

// versions returns the served versions of a kind. The caller holds the lock.
func (s *Store) versions(kind schema.GroupKind) map[string]*resource {
	if versions, ok := s.state.definitions[kind]; ok {
		return versions
	}
	return s.catalog.versions(kind)
}

// resource returns what serves a kind, or the error of a REST mapper. The caller holds the lock.
func (s *Store) resource(gvk schema.GroupVersionKind) (*resource, error) {
	if r, ok := s.versions(gvk.GroupKind())[gvk.Version]; ok {
		return r, nil
	}
	return nil, noMatch(gvk.GroupKind(), gvk.Version)
}

func noMatch(kind schema.GroupKind, versions ...string) error {
	return &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

// served are the kinds that are served now. The caller holds the lock.
func (s *Store) served() []map[string]*resource {
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
