package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/kinds"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scope says whether the objects of a kind are in namespaces. The zero value means that it was not looked up yet.
type scope int8

const (
	// scopeUnknown means that the APIService of the kind is not there yet.
	scopeUnknown scope = iota + 1
	scopeNamespaced
	scopeCluster
)

// definition is what an object defines that brings types into the cluster.
type definition struct {
	// managed has one type.
	managed []apis.ManagedType
	// scope is the scope of the type. It is scopeUnknown for an APIService.
	scope scope
}

// readDefinition returns nil for an object that defines no type. It accepts any version of the kinds that do, because
// it needs no Go type.
func readDefinition(kind schema.GroupKind, content map[string]any) (*definition, error) {
	group, groupErr := textAt(content, "spec", "group")
	switch kind {
	case kinds.CustomResourceDefinition:
		defined, kindErr := textAt(content, "spec", "names", "kind")
		word, scopeErr := textAt(content, "spec", "scope")
		if err := errors.Join(groupErr, kindErr, scopeErr); err != nil {
			return nil, err
		}
		d := &definition{managed: []apis.ManagedType{{Group: group, Version: "*", Kind: defined}}}
		switch word {
		case "Namespaced":
			d.scope = scopeNamespaced
		case "Cluster":
			d.scope = scopeCluster
		default:
			return nil, fmt.Errorf("its spec.scope %q is neither Namespaced nor Cluster", word)
		}
		return d, nil
	case kinds.APIService:
		version, versionErr := textAt(content, "spec", "version")
		if err := errors.Join(groupErr, versionErr); err != nil {
			return nil, err
		}
		managed := []apis.ManagedType{{Group: group, Version: version, Kind: "*"}}
		return &definition{managed: managed, scope: scopeUnknown}, nil
	}
	return nil, nil
}

// textAt returns the string at path, which must be there.
func textAt(content map[string]any, path ...string) (string, error) {
	text, _, _ := unstructured.NestedString(content, path...)
	if text == "" || text == "*" {
		return "", fmt.Errorf("it has no %s that is a name", strings.Join(path, "."))
	}
	return text, nil
}

// types are the objects that define types, by what they define.
type types struct {
	kinds    map[schema.GroupKind]*item
	versions map[schema.GroupVersion]*item
	// partial reports whether a faulty object defines types, so that not all are known.
	partial bool
}

// typesOf collects the definitions of items. It reports an item that defines the same type as an earlier one, which
// counts.
func typesOf(items []*item, report func(*item, error)) *types {
	t := &types{kinds: map[schema.GroupKind]*item{}, versions: map[schema.GroupVersion]*item{}}
	for _, i := range items {
		if i.fault != nil {
			t.partial = t.partial || kinds.DefinesTypes(i.kind.GroupKind())
			continue
		}
		if i.definition == nil {
			continue
		}
		var other *item
		if managed := i.definition.managed[0]; managed.Kind == "*" {
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
			report(i, fmt.Errorf("it defines the same type as %s", other.describe()))
		}
	}
	return t
}

// definers returns what defines kind; each may be nil.
func (t *types) definers(kind schema.GroupVersionKind) (crd, apiService *item) {
	return t.kinds[kind.GroupKind()], t.versions[kind.GroupVersion()]
}

// scopes finds the scopes of kinds, in one request.
type scopes struct {
	types  *types
	lookup func(kind schema.GroupVersionKind) (namespaced, known bool, err error)
	known  map[schema.GroupVersionKind]scopeResult
}

type scopeResult struct {
	scope scope
	// unserved reports whether neither the cluster nor the objects know the kind.
	unserved bool
	err      error
}

func (s *scopes) of(kind schema.GroupVersionKind) scopeResult {
	found, ok := s.known[kind]
	if !ok {
		found = s.find(kind)
		s.known[kind] = found
	}
	return found
}

func (s *scopes) find(kind schema.GroupVersionKind) scopeResult {
	crd, apiService := s.types.definers(kind)
	if crd != nil {
		return scopeResult{scope: crd.definition.scope}
	}
	namespaced, known, err := s.lookup(kind)
	switch {
	case err != nil:
		return scopeResult{err: fmt.Errorf("the scope of its kind cannot be found out: %w", err)}
	case known && namespaced:
		return scopeResult{scope: scopeNamespaced}
	case known:
		return scopeResult{scope: scopeCluster}
	case apiService != nil:
		return scopeResult{scope: scopeUnknown}
	default:
		err := &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
		unserved := fmt.Errorf("neither the cluster nor any of the objects defines its kind: %w", err)
		return scopeResult{unserved: true, err: unserved}
	}
}

// MissingNamespaces returns the namespaces that objects are in and that are not among the objects themselves, sorted.
func MissingNamespaces(objects []Object) []string {
	missing := map[string]bool{}
	for i := range objects {
		if namespace := objects[i].Desired.Namespace; namespace != "" {
			missing[namespace] = true
		}
	}
	for i := range objects {
		if objects[i].Desired.GroupKind() == kinds.Namespace {
			delete(missing, objects[i].Desired.Name)
		}
	}
	return slices.Sorted(maps.Keys(missing))
}
