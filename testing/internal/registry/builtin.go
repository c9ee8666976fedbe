package registry

import (
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BuiltIn returns a kind that each API server has, in the versions that a current one serves: those that are generally
// available, or all versions of a kind of which there is none. These may not include the version asked for.
//
// Versions of HorizontalPodAutoscaler have different fields; those that the other version lacks are lost.
func BuiltIn(kind schema.GroupVersionKind) (Type, bool) {
	t, ok := builtIn()[kind.GroupKind()]
	return t, ok
}

// scheme has the built-in kinds. That of k8s.io/client-go is not used, because operators add their kinds to it.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	return s
})

var builtIn = sync.OnceValue(func() map[schema.GroupKind]Type {
	types := map[schema.GroupKind]Type{}
	for kind := range scheme().AllKnownTypes() {
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

// customResourceDefinitions returns the kind of definitions.
func customResourceDefinitions() Type {
	version := apiextensionsv1.SchemeGroupVersion
	return Type{
		Kind:     version.WithKind("CustomResourceDefinition").GroupKind(),
		Resource: "customresourcedefinitions",
		Scope:    Cluster,
		Versions: []Version{{
			Name: version.Version, HasStatus: true,
			New: func() client.Object { return &apiextensionsv1.CustomResourceDefinition{} },
		}},
	}
}

func newBuiltIn(kind schema.GroupVersionKind) (Type, bool) {
	t := Type{
		Kind: kind.GroupKind(), Resource: plural(kind), Scope: Namespaced,
		AllowUnconditionalUpdate: !conditionalUpdate[kind.GroupKind()],
		AllowCreateOnUpdate:      createOnUpdate[kind.GroupKind()],
		WithoutGeneration:        withoutGeneration[kind.GroupKind()],
	}
	if kind.Kind == "Endpoints" {
		t.Resource = "endpoints"
	}
	if clusterScoped[t.Kind] {
		t.Scope = Cluster
	}
	for _, version := range servedVersions(t.Kind) {
		s := builtInStrategy{kind: t.Kind, scope: t.Scope, name: subdomainName, rules: noRules}
		obj, err := scheme().New(t.Kind.WithVersion(version.Version))
		if err != nil {
			return Type{}, false
		}
		typed, ok := obj.(client.Object)
		if !ok {
			return Type{}, false
		}
		if s.layout, ok = layoutOf(typed, !withoutSubresource[t.Kind]); !ok {
			return Type{}, false
		}
		if rule, ok := nameRules[t.Kind]; ok {
			s.name = rule
		}
		if special, ok := contentRules[t.Kind.WithVersion(version.Version)]; ok {
			s.rules = special
		}
		t.Versions = append(t.Versions, Version{
			Name: version.Version, New: s.layout.empty, HasStatus: s.hasStatus, Strategy: s,
		})
	}
	return t, len(t.Versions) > 0
}

// servedVersions returns the versions of a kind that an API server serves by default, the newest first.
func servedVersions(kind schema.GroupKind) []schema.GroupVersion {
	versions := scheme().VersionsForGroupKind(kind)
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
	layout
	kind  schema.GroupKind
	scope Scope
	name  nameRule
	rules rules
}

// PrepareForCreate implements [Strategy].
func (s builtInStrategy) PrepareForCreate(obj client.Object) {
	s.dropStatus(obj)
	if !withoutGeneration[s.kind] {
		obj.SetGeneration(1)
	}
	s.rules.complete(obj, nil)
}

// PrepareForUpdate implements [Strategy].
func (s builtInStrategy) PrepareForUpdate(obj, old client.Object, subresource string) {
	generation := old.GetGeneration()
	s.keep(obj, old, subresource)
	if subresource != "" {
		keepOnStatus(s.kind, obj, old)
		if service, ok := obj.(*corev1.Service); ok {
			completeServiceStatus(service)
		}
		obj.SetGeneration(generation)
		return
	}
	same := s.sameContents(obj, old)
	s.rules.complete(obj, old)
	if same {
		// An object that was given without its defaults stays as it is.
		s.copyContents(obj, old)
	} else {
		same = s.sameContents(obj, old)
	}
	if !withoutGeneration[s.kind] && (!same || raisesGeneration(s.kind, obj, old)) {
		generation++
	}
	obj.SetGeneration(generation)
}

// Validate implements [Strategy].
func (s builtInStrategy) Validate(obj client.Object) field.ErrorList {
	errs := append(validateMetadata(obj, s.scope, s.name), validateFinalizers(obj, s.kind)...)
	return append(errs, s.rules.validate(obj, nil)...)
}

// ValidateUpdate implements [Strategy]. What was wrong with old already is accepted.
func (s builtInStrategy) ValidateUpdate(obj, old client.Object, subresource string) field.ErrorList {
	errs := validateMetadataUpdate(obj, old, s.scope, s.name)
	if subresource != "" {
		return append(errs, validateStatus(obj)...)
	}
	errs = append(errs, ratchet(validateFinalizers(obj, s.kind), validateFinalizers(old, s.kind))...)
	if s.sameContents(obj, old) {
		return errs
	}
	contents := s.rules.validate(obj, old)
	if len(contents) > 0 {
		// An API server completes what it reads, too: a default that old lacks is not a change.
		completed := old.DeepCopyObject().(client.Object)
		s.rules.complete(completed, old)
		contents = ratchet(s.rules.validate(obj, completed), s.rules.validate(completed, nil))
	}
	return append(errs, contents...)
}
