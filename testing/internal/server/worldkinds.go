package server

import (
	"path"
	"strings"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// Kind is a kind that a world serves. Those who get one must not change it.
type Kind struct {
	schema.GroupKind
	// Resource is the plural name in URLs, Singular that of one object.
	Resource, Singular string
	Scope              registry.Scope
	// Versions are served. The first is the one in which objects are stored, or the first that is served.
	Versions []Version
	// WithoutGeneration is set if the objects have no generation.
	WithoutGeneration bool
	// Prefix is what the keys of the objects in the storage begin with, before a slash.
	Prefix string
}

// Version is a served version of a [Kind].
type Version struct {
	Name string
	// HasStatus is set if the status is a subresource.
	HasStatus bool
	// New returns an empty object, in the Go type that the kind has where nobody asks for another.
	New func() client.Object
}

// Version returns a served version, nil if there is no such, or no kind.
func (k *Kind) Version(name string) *Version {
	if k == nil {
		return nil
	}
	for i := range k.Versions {
		if k.Versions[i].Name == name {
			return &k.Versions[i]
		}
	}
	return nil
}

// IsNamespaced reports whether all objects are in a namespace.
func (k *Kind) IsNamespaced() bool { return k.Scope == registry.Namespaced }

// NamespaceOf returns the namespace of an object for which a caller gave one.
func (k *Kind) NamespaceOf(given string) string {
	if k.Scope == registry.Cluster {
		return ""
	}
	return given
}

// Key returns the key of an object in the storage. An object that is in no namespace has none there.
func (k *Kind) Key(namespace, name string) string {
	if namespace = k.NamespaceOf(namespace); namespace != "" {
		name = namespace + "/" + name
	}
	return k.Prefix + "/" + name
}

// BuiltIn returns a kind that each world serves.
func BuiltIn(kind schema.GroupKind) (Kind, bool) {
	k, ok := builtInKinds()[kind]
	return k, ok
}

// DefinitionKind is the kind of definitions.
var DefinitionKind = schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}

var eventKind = schema.GroupKind{Group: eventsv1.GroupName, Kind: "Event"}

var builtInKinds = sync.OnceValue(func() map[schema.GroupKind]Kind {
	all := map[schema.GroupKind]Kind{}
	for _, k := range kinds() {
		t := k.Type
		t.Versions = k.versions
		all[k.Kind] = NewKind(t)
	}
	for _, other := range []schema.GroupKind{eventKind, DefinitionKind} {
		t, _ := registry.BuiltIn(other.WithVersion(""))
		all[other] = NewKind(t)
	}
	return all
})

// NewKind returns a kind as it is served.
func NewKind(t registry.Type) Kind {
	k := Kind{
		GroupKind: t.Kind, Resource: t.Resource, Singular: strings.ToLower(t.Kind.Kind), Scope: t.Scope,
		WithoutGeneration: t.WithoutGeneration, Prefix: path.Join("/", t.Kind.Group, t.Resource),
	}
	if t.Kind == eventKind {
		k.Prefix = "/events" // Both kinds of events are the same objects.
	}
	for _, v := range t.Versions {
		k.Versions = append(k.Versions, Version{Name: v.Name, HasStatus: v.HasStatus, New: v.New})
	}
	return k
}

// DefinedIn returns the kind that the definition in an entry of the storage defines, nil if the definition is not
// established. It is the same each time.
func DefinedIn(e *storage.Entry) *Kind {
	d := readDefinition(e)
	if d.err != nil || d.served == nil {
		return nil
	}
	return &d.kind
}

// kindOfDefinition returns the kind of a definition, which has no versions if it is not established.
func kindOfDefinition(d *apiextensionsv1.CustomResourceDefinition) Kind {
	names := d.Spec.Names
	k := Kind{
		GroupKind: schema.GroupKind{Group: d.Spec.Group, Kind: names.Kind},
		Resource:  names.Plural, Singular: names.Singular, Scope: registry.Cluster,
		Prefix: path.Join("/", d.Spec.Group, names.Plural),
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
		served := definedVersion(k.WithVersion(v.Name), v.Subresources)
		if v.Storage {
			k.Versions = append([]Version{served}, k.Versions...)
		} else {
			k.Versions = append(k.Versions, served)
		}
	}
	return k
}

func definedVersion(gvk schema.GroupVersionKind, subresources *apiextensionsv1.CustomResourceSubresources) Version {
	return Version{
		Name: gvk.Version, HasStatus: subresources != nil && subresources.Status != nil,
		New: func() client.Object {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gvk)
			return u
		},
	}
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
	k := w.Kinds(kind)
	if k == nil || len(k.Versions) == 0 {
		return Kind{}, false
	}
	return *k, true
}

func noMatch(gvk schema.GroupVersionKind) error {
	return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}
