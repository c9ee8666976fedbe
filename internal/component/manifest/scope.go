package manifest

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scope tells whether the objects of a kind are in namespaces. The zero value means that nobody has asked.
type scope int8

const (
	// scopeUnknown: an APIService that is not there yet will tell.
	scopeUnknown scope = iota + 1
	scopeNamespaced
	scopeCluster
)

// types are the objects that define types, by what they define.
type types struct {
	kinds    map[schema.GroupKind]*item
	versions map[schema.GroupVersion]*item
	// conflicts are pairs of objects that define the same; the first counts.
	conflicts [][2]*item
	// partial: there is a faulty object that defines types, so which ones is not known.
	partial bool
}

// typesOf collects the definitions of items.
func typesOf(items []*item) *types {
	t := &types{kinds: map[schema.GroupKind]*item{}, versions: map[schema.GroupVersion]*item{}}
	for _, i := range items {
		if kind := i.kind.GroupKind(); i.fault != nil && (kind == crdKind || kind == apiServiceKind) {
			t.partial = true
		}
		if i.definition == nil || i.fault != nil {
			continue
		}
		managed := i.definition.managed
		var other *item
		if managed.Kind == "*" {
			version := schema.GroupVersion{Group: managed.Group, Version: managed.Version}
			if other = t.versions[version]; other == nil {
				t.versions[version] = i
			}
		} else {
			kind := schema.GroupKind{Group: managed.Group, Kind: managed.Kind}
			if other = t.kinds[kind]; other == nil {
				t.kinds[kind] = i
			}
		}
		if other != nil && other.name != i.name {
			t.conflicts = append(t.conflicts, [2]*item{other, i})
		}
	}
	return t
}

// definers returns what defines kind; each may be nil.
func (t *types) definers(kind schema.GroupVersionKind) (crd, apiService *item) {
	return t.kinds[kind.GroupKind()], t.versions[kind.GroupVersion()]
}

// scopes answers for the scope of kinds, in one request.
type scopes struct {
	types  *types
	lookup func(kind schema.GroupVersionKind) (namespaced, known bool, err error)
	known  map[schema.GroupVersionKind]verdict
	// last spares most look-ups: objects of a kind tend to stand together.
	last        schema.GroupVersionKind
	lastVerdict verdict
}

type verdict struct {
	scope scope
	// unserved: neither the cluster nor the objects know the kind.
	unserved bool
	err      error
}

func (s *scopes) of(kind schema.GroupVersionKind) verdict {
	if kind == s.last {
		return s.lastVerdict
	}
	v, ok := s.known[kind]
	if !ok {
		v = s.ask(kind)
		s.known[kind] = v
	}
	s.last, s.lastVerdict = kind, v
	return v
}

func (s *scopes) ask(kind schema.GroupVersionKind) verdict {
	crd, apiService := s.types.definers(kind)
	if crd != nil {
		return verdict{scope: crd.definition.scope}
	}
	namespaced, known, err := s.lookup(kind)
	switch {
	case err != nil:
		return verdict{err: fmt.Errorf("the scope of its kind cannot be found out: %w", err)}
	case known && namespaced:
		return verdict{scope: scopeNamespaced}
	case known:
		return verdict{scope: scopeCluster}
	case apiService != nil:
		return verdict{scope: scopeUnknown}
	default:
		return verdict{unserved: true, err: fmt.Errorf("neither the cluster nor any of the objects defines its kind: %w",
			&meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}})}
	}
}

// MissingNamespaces returns the namespaces that objects are in, and are not among the objects themselves, sorted.
func MissingNamespaces(objects []Object) []string {
	missing := map[string]bool{}
	for i := range objects {
		if namespace := objects[i].Desired.Namespace; namespace != "" {
			missing[namespace] = true
		}
	}
	for i := range objects {
		if objects[i].Desired.GroupKind() == namespaceKind {
			delete(missing, objects[i].Desired.Name)
		}
	}
	return slices.Sorted(maps.Keys(missing))
}
