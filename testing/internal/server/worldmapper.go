package server

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// all returns those of the kinds that the world serves, and all that it defines.
func (w World) all(kinds []schema.GroupKind) []Kind {
	seen := map[schema.GroupKind]bool{}
	var served []Kind
	add := func(kind schema.GroupKind) {
		if seen[kind] {
			return
		}
		seen[kind] = true
		if k, ok := w.Kind(kind); ok {
			served = append(served, k)
		}
	}
	add(definitionKind)
	for _, kind := range kinds {
		add(kind)
	}
	for _, d := range definitionsIn(w.Storage) {
		add(d.kind.GroupKind)
	}
	return served
}

// Resources returns the resources of those of the kinds that the world serves, and of all that it defines, as discovery
// lists them.
func (w World) Resources(kinds []schema.GroupKind) []*metav1.APIResourceList {
	lists := map[string]*metav1.APIResourceList{}
	for _, k := range w.all(kinds) {
		for _, v := range k.Versions {
			gv := schema.GroupVersion{Group: k.Group, Version: v.Name}.String()
			if lists[gv] == nil {
				lists[gv] = &metav1.APIResourceList{GroupVersion: gv}
			}
			lists[gv].APIResources = append(lists[gv].APIResources, k.discovered(v)...)
		}
	}
	all := slices.Collect(maps.Values(lists))
	for _, list := range all {
		slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(all, func(a, b *metav1.APIResourceList) int {
		return strings.Compare(a.GroupVersion, b.GroupVersion)
	})
	return all
}

// discovered returns the resource and its status.
func (k Kind) discovered(v Version) []metav1.APIResource {
	found := []metav1.APIResource{{
		Name: k.Resource, SingularName: k.Singular, Kind: k.Kind, Group: k.Group, Version: v.Name,
		Namespaced: k.Scope != registry.Cluster,
		Verbs:      metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
	}}
	if v.Status {
		status := found[0]
		status.Name += "/status"
		status.Verbs = metav1.Verbs{"get", "patch", "update"}
		found = append(found, status)
	}
	return found
}

// Mapper returns a mapper that knows what the world serves at the time of each call. To find the mapping of a kind
// costs some microseconds. Kinds returns those that are served without a definition, for what begins with a resource.
func (w World) Mapper(kinds func() []schema.GroupKind) meta.RESTMapper { return worldMapper{w, kinds} }

type worldMapper struct {
	world World
	kinds func() []schema.GroupKind
}

// RESTMapping implements [meta.RESTMapper]. Without versions it returns that in which objects are stored.
func (m worldMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mappings, err := m.RESTMappings(kind, versions...)
	if err != nil {
		return nil, err
	}
	return mappings[0], nil
}

// RESTMappings implements [meta.RESTMapper].
func (m worldMapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	served, ok := m.world.Kind(kind)
	wanted := versions
	if ok && len(versions) == 0 {
		wanted = []string{served.Versions[0].Name}
	}
	var mappings []*meta.RESTMapping
	for _, version := range wanted {
		if ok && served.Serves(version) {
			mappings = append(mappings, m.world.mapping(served, version))
		}
	}
	if len(mappings) == 0 {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return mappings, nil
}

// mapping returns the mapping of a version. If nothing says what the scope of a kind is, it is that of its objects.
func (w World) mapping(k Kind, version string) *meta.RESTMapping {
	mapping := &meta.RESTMapping{
		Resource:         schema.GroupVersionResource{Group: k.Group, Version: version, Resource: k.Resource},
		GroupVersionKind: k.WithVersion(version), Scope: meta.RESTScopeNamespace,
	}
	switch k.Scope {
	case registry.Cluster:
		mapping.Scope = meta.RESTScopeRoot
	case registry.AnyScope:
		for _, e := range w.Storage.Entries(k.prefix) {
			if !strings.Contains(e.Key[len(k.prefix):], "/") {
				mapping.Scope = meta.RESTScopeRoot
			}
		}
	}
	return mapping
}

// KindFor implements [meta.RESTMapper].
func (m worldMapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.listed().KindFor(resource)
}

// KindsFor implements [meta.RESTMapper].
func (m worldMapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.listed().KindsFor(resource)
}

// ResourceFor implements [meta.RESTMapper].
func (m worldMapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.listed().ResourceFor(input)
}

// ResourcesFor implements [meta.RESTMapper].
func (m worldMapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.listed().ResourcesFor(input)
}

// ResourceSingularizer implements [meta.RESTMapper].
func (m worldMapper) ResourceSingularizer(resource string) (string, error) {
	return m.listed().ResourceSingularizer(resource)
}

// listed returns a mapper with all kinds. Few ask for it, and it takes a while. Where several groups have a resource,
// the core group is preferred, and then the first in the alphabet; where several versions have it, the stored one.
func (m worldMapper) listed() meta.RESTMapper {
	listed := meta.NewDefaultRESTMapper(nil)
	preferred := map[schema.GroupVersion]bool{}
	for _, k := range m.world.all(m.kinds()) {
		for _, v := range k.Versions {
			mapping := m.world.mapping(k, v.Name)
			singular := mapping.Resource.GroupVersion().WithResource(k.Singular)
			listed.AddSpecific(mapping.GroupVersionKind, mapping.Resource, singular, mapping.Scope)
		}
		preferred[k.WithVersion(k.Versions[0].Name).GroupVersion()] = true
	}
	prioritized := meta.PriorityRESTMapper{Delegate: listed}
	for _, gv := range slices.SortedFunc(maps.Keys(preferred), func(a, b schema.GroupVersion) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), -version.CompareKubeAwareVersionStrings(a.Version, b.Version))
	}) {
		prioritized.ResourcePriority = append(prioritized.ResourcePriority, gv.WithResource(meta.AnyResource))
		prioritized.KindPriority = append(prioritized.KindPriority, gv.WithKind(meta.AnyKind))
	}
	return prioritized
}
