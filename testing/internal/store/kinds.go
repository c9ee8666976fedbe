package store

import (
	"path"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// kind is a kind as it is served.
type kind struct {
	schema.GroupKind
	resource schema.GroupResource
	singular string
	scope    registry.Scope
	// versions are served; the first is the one that is stored.
	versions []version
	// custom is nil for a kind that is built in or defined.
	custom *registry.Type
	// definition is the name of the definition, empty if there is none.
	definition string
	// prefix is what the keys of its objects begin with in the storage.
	prefix string
}

// version is a served version of a kind.
type version struct {
	name      string
	hasStatus bool
	// object returns an empty object, in the Go type that the kind has where nobody asks for another.
	object func() client.Object
}

// key is that of an object in the storage.
func (k *kind) key(namespace, name string) string {
	return path.Join(k.prefix, k.namespace(namespace), name)
}

// namespace returns the namespace of an object for which a caller gave one.
func (k *kind) namespace(given string) string {
	if k.scope == registry.Cluster {
		return ""
	}
	return given
}

// isNamespaced reports whether all objects of the kind are in a namespace.
func (k *kind) isNamespaced() bool { return k.scope == registry.Namespaced }

// version returns a served version, nil if there is no such.
func (k *kind) version(name string) *version {
	if k == nil {
		return nil
	}
	for i := range k.versions {
		if k.versions[i].name == name {
			return &k.versions[i]
		}
	}
	return nil
}

func newKind(t registry.Type) *kind {
	k := &kind{
		GroupKind: t.Kind, resource: schema.GroupResource{Group: t.Kind.Group, Resource: t.Resource},
		singular: strings.ToLower(t.Kind.Kind), scope: t.Scope,
	}
	for _, v := range t.Versions {
		k.versions = append(k.versions, version{v.Name, v.HasStatus, v.New})
	}
	k.prefix = path.Join("/", t.Kind.Group, t.Resource)
	if t.Kind == (schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}) {
		k.prefix = "/events" // Both kinds of events are the same objects.
	}
	return k
}

// definedKind returns the kind that a definition defines.
func definedKind(d *apiextensionsv1.CustomResourceDefinition) *kind {
	k := &kind{
		GroupKind: definedBy(d), resource: schema.GroupResource{Group: d.Spec.Group, Resource: d.Spec.Names.Plural},
		singular: d.Spec.Names.Singular, scope: registry.Cluster,
		prefix: path.Join("/", d.Spec.Group, d.Spec.Names.Plural), definition: d.Name,
	}
	if k.singular == "" {
		k.singular = strings.ToLower(k.Kind)
	}
	if d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		k.scope = registry.Namespaced
	}
	for _, v := range d.Spec.Versions {
		if !v.Served {
			continue
		}
		gvk := k.WithVersion(v.Name)
		served := version{v.Name, v.Subresources != nil && v.Subresources.Status != nil, func() client.Object {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gvk)
			return u
		}}
		if v.Storage {
			k.versions = append([]version{served}, k.versions...)
		} else {
			k.versions = append(k.versions, served)
		}
	}
	return k
}

func definedBy(d *apiextensionsv1.CustomResourceDefinition) schema.GroupKind {
	return schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
}

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

// kind returns a kind that needs no definition, nil if it is not served.
func (c *catalog) kind(of schema.GroupKind) *kind {
	if known, ok := c.known.Load(of); ok {
		return known.(*kind)
	}
	var served *kind
	if t, ok := c.find(of); ok {
		served = newKind(t)
		if _, builtIn := registry.BuiltIn(of.WithVersion("")); !builtIn {
			served.custom = &t
			c.resources.Store(served.resource, t)
		}
	}
	known, _ := c.known.LoadOrStore(of, served)
	return known.(*kind)
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

var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition").GroupKind()
