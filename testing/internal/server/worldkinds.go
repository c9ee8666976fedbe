package server

import (
	"strings"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// Kind is a kind that a world serves.
type Kind struct {
	schema.GroupKind
	// Resource is the plural name in URLs, Singular that of one object.
	Resource, Singular string
	Scope              registry.Scope
	// Versions are served. The first is the one in which objects are stored, or the first that is served.
	Versions []Version
	// WithoutGeneration is set if the objects have no generation.
	WithoutGeneration bool

	// prefix is that of the keys of the objects in the storage.
	prefix string
}

// Version is a served version of a [Kind]. It says which subresources there are.
type Version struct {
	Name          string
	Status, Scale bool
}

// Serves reports whether a version is served.
func (k Kind) Serves(version string) bool {
	for _, v := range k.Versions {
		if v.Name == version {
			return true
		}
	}
	return false
}

// Key returns the key of an object in the storage. An object that is in no namespace has none there.
func (k Kind) Key(namespace, name string) string {
	if namespace == "" || k.Scope == registry.Cluster {
		return k.prefix + name
	}
	return k.prefix + namespace + "/" + name
}

func prefixOf(resource schema.GroupResource) string {
	if resource.Group == "" {
		return "/" + resource.Resource + "/"
	}
	return "/" + resource.Group + "/" + resource.Resource + "/"
}

// BuiltIn returns a kind that each world serves.
func BuiltIn(kind schema.GroupKind) (Kind, bool) {
	k, ok := builtInKinds()[kind]
	return k, ok
}

var definitionKind = schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}

var builtInKinds = sync.OnceValue(func() map[schema.GroupKind]Kind {
	all := map[schema.GroupKind]Kind{}
	for _, k := range kinds() {
		served := kindOfType(k.Type)
		served.Versions = nil
		for _, v := range k.versions {
			_, scaled := scaledOf(k.object())
			served.Versions = append(served.Versions, Version{Name: v.Name, Status: v.HasStatus, Scale: scaled})
		}
		all[k.Kind] = served
	}
	event := all[schema.GroupKind{Kind: "Event"}]
	event.Group, event.Versions = eventsv1.GroupName, []Version{{Name: eventsv1.SchemeGroupVersion.Version}}
	all[event.GroupKind] = event
	definitions, _ := registry.BuiltIn(apiextensionsv1.SchemeGroupVersion.WithKind(definitionKind.Kind))
	all[definitionKind] = kindOfType(definitions)
	return all
})

func kindOfType(t registry.Type) Kind {
	k := Kind{
		GroupKind: t.Kind, Resource: t.Resource, Singular: strings.ToLower(t.Kind.Kind), Scope: t.Scope,
		WithoutGeneration: t.WithoutGeneration,
		prefix:            prefixOf(schema.GroupResource{Group: t.Kind.Group, Resource: t.Resource}),
	}
	for _, v := range t.Versions {
		k.Versions = append(k.Versions, Version{Name: v.Name, Status: v.HasStatus})
	}
	return k
}

// kindOfDefinition returns the kind of a definition, which has no versions if it is not established.
func kindOfDefinition(d *apiextensionsv1.CustomResourceDefinition) Kind {
	names := d.Spec.Names
	k := Kind{
		GroupKind: schema.GroupKind{Group: d.Spec.Group, Kind: names.Kind},
		Resource:  names.Plural, Singular: names.Singular, Scope: registry.Cluster,
		prefix: prefixOf(schema.GroupResource{Group: d.Spec.Group, Resource: names.Plural}),
	}
	if k.Singular == "" {
		k.Singular = strings.ToLower(names.Kind)
	}
	if d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		k.Scope = registry.Namespaced
	}
	if !registry.Established(d) {
		return k
	}
	for _, v := range d.Spec.Versions {
		if !v.Served {
			continue
		}
		served := []Version{{Name: v.Name}}
		if v.Subresources != nil {
			served[0].Status, served[0].Scale = v.Subresources.Status != nil, v.Subresources.Scale != nil
		}
		if v.Storage {
			k.Versions = append(served, k.Versions...)
		} else {
			k.Versions = append(k.Versions, served...)
		}
	}
	return k
}

// Kind returns a kind that the world serves. A definition comes before [World].Kinds.
func (w World) Kind(kind schema.GroupKind) (Kind, bool) {
	if k, ok := BuiltIn(kind); ok {
		return k, true
	}
	for _, d := range definitionsIn(w.Storage) {
		if d.kind.GroupKind == kind && len(d.kind.Versions) > 0 {
			return d.kind, true
		}
	}
	if w.Kinds == nil {
		return Kind{}, false
	}
	t, ok := w.Kinds(kind)
	if !ok || len(t.Versions) == 0 {
		return Kind{}, false
	}
	return kindOfType(t), true
}

func noMatch(gvk schema.GroupVersionKind) error {
	return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}
