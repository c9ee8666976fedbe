package store

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/server"
)

// catalog has the kinds that need no definition. They never change, so forks share them.
type catalog struct {
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	listed map[schema.GroupKind]registry.Type
	// known has the served kinds that were asked for, by group and kind, nil for one that is not served. resources has
	// those that are not built in by their resource.
	known, resources sync.Map
	// undefined is what is served without definitions.
	undefined *kinds
	answers   answers
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
	c.undefined = &kinds{catalog: c}
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
	kinds := map[schema.GroupKind]bool{server.DefinitionKind: true}
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

// kind returns a kind that needs no definition, nil if it is not served.
func (c *catalog) kind(of schema.GroupKind) *server.Kind {
	if known, ok := c.known.Load(of); ok {
		return known.(*server.Kind)
	}
	var served *server.Kind
	if t, ok := c.find(of); ok {
		made := server.NewKind(t)
		served = &made
		if !isBuiltIn(of) {
			c.resources.Store(resourceOf(served), t)
		}
	}
	known, _ := c.known.LoadOrStore(of, served)
	return known.(*server.Kind)
}

func isBuiltIn(kind schema.GroupKind) bool {
	_, ok := registry.BuiltIn(kind.WithVersion(""))
	return ok
}

func resourceOf(k *server.Kind) schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// typeOf returns the kind of a resource that is neither built in nor defined, for the API server. Clients ask for the
// kind first.
func (c *catalog) typeOf(resource schema.GroupResource) (registry.Type, bool) {
	t, ok := c.resources.Load(resource)
	if !ok {
		return registry.Type{}, false
	}
	return t.(registry.Type), true
}
