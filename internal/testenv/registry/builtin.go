package registry

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BuiltIn returns a kind that each API server has, in the versions that a current one serves: those that are generally
// available, or all versions of a kind of which there is none. These may not include the version asked for.
func BuiltIn(kind schema.GroupVersionKind) (Type, bool) {
	t, ok := builtIn()[kind.GroupKind()]
	return t, ok
}

// builtIn has the kinds of the scheme of k8s.io/client-go.
var builtIn = sync.OnceValue(func() map[schema.GroupKind]Type {
	types := map[schema.GroupKind]Type{}
	for kind := range clientgoscheme.Scheme.AllKnownTypes() {
		if _, ok := types[kind.GroupKind()]; ok {
			continue
		}
		if t, ok := newBuiltIn(kind); ok {
			types[kind.GroupKind()] = t
		}
	}
	definitions := customResourceDefinitions()
	types[definitions.Kind] = definitions
	return types
})

func newBuiltIn(kind schema.GroupVersionKind) (Type, bool) {
	t := Type{Kind: kind.GroupKind(), Resource: plural(kind), Scope: Namespaced}
	if kind.Kind == "Endpoints" {
		t.Resource = "endpoints"
	}
	if clusterScoped[kind.GroupKind()] {
		t.Scope = Cluster
	}
	for _, version := range servedVersions(kind.GroupKind()) {
		obj, err := clientgoscheme.Scheme.New(version.WithKind(kind.Kind))
		if err != nil {
			return Type{}, false
		}
		typed, ok := obj.(client.Object)
		if !ok {
			return Type{}, false
		}
		s, ok := newGoStrategy(typed, !withoutSubresource[kind.GroupKind()])
		if !ok {
			return Type{}, false
		}
		t.Versions = append(t.Versions, Version{version.Version, builtInStrategy{
			goStrategy: s, scope: t.Scope, generation: !withoutGeneration[kind.GroupKind()],
		}})
	}
	return t, len(t.Versions) > 0
}

// servedVersions returns the versions of a kind that an API server serves by default, the newest first.
func servedVersions(kind schema.GroupKind) []schema.GroupVersion {
	versions := clientgoscheme.Scheme.VersionsForGroupKind(kind)
	stable := slices.DeleteFunc(slices.Clone(versions), func(v schema.GroupVersion) bool {
		return strings.Contains(v.Version, "alpha") || strings.Contains(v.Version, "beta")
	})
	if len(stable) > 0 {
		versions = stable
	}
	slices.SortFunc(versions, func(a, b schema.GroupVersion) int {
		return -version.CompareKubeAwareVersionStrings(a.Version, b.Version)
	})
	return versions
}

// builtInStrategy is that of a built-in kind.
type builtInStrategy struct {
	goStrategy
	scope      Scope
	generation bool
}

// PrepareForCreate implements [Strategy].
func (s builtInStrategy) PrepareForCreate(obj client.Object) {
	s.dropStatus(obj)
	if s.generation {
		obj.SetGeneration(1)
	}
}

// PrepareForUpdate implements [Strategy].
func (s builtInStrategy) PrepareForUpdate(obj, old client.Object, subresource string) {
	s.keep(obj, old, subresource)
	switch {
	case subresource != "":
		keepMetadata(obj, old)
	case s.generation:
		s.nextGeneration(obj, old)
	default:
		obj.SetGeneration(old.GetGeneration())
	}
}

// Validate implements [Strategy].
func (s builtInStrategy) Validate(obj client.Object) field.ErrorList {
	return validateMetadata(obj, s.scope, subdomainName)
}

// ValidateUpdate implements [Strategy].
func (s builtInStrategy) ValidateUpdate(obj, old client.Object, subresource string) field.ErrorList {
	return validateMetadataUpdate(obj, old, s.scope, subdomainName)
}

// Converter implements [Strategy]. Parsing the schemas takes a while, so it is done when it is needed.
func (s builtInStrategy) Converter() managedfields.TypeConverter { return published() }

// published has the merge schemas of the built-in kinds.
var published = sync.OnceValue(func() managedfields.TypeConverter {
	return clientgoapply.NewTypeConverter(clientgoscheme.Scheme)
})
