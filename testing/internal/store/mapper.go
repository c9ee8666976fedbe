package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/espalier-dev/espalier/testing/internal/registry"
	"github.com/espalier-dev/espalier/testing/internal/server"
)

// RESTMapper knows the kinds that are served now, unless the options have another mapper.
func (s *Store) RESTMapper() meta.RESTMapper {
	if s.options.Mapper != nil {
		return s.options.Mapper
	}
	return mapper{s.kinds, func(of *server.Kind) meta.RESTScope {
		// If nothing says what the scope is, it is that of the objects.
		objects := s.kept.Entries(of.Prefix + "/")
		return scopeOf(of, len(objects) > 0 && strings.Count(objects[0].Key[len(of.Prefix):], "/") == 1)
	}}
}

// Resources returns the resources that are served now, as discovery lists them.
func (s *Store) Resources() []*metav1.APIResourceList {
	lists := map[schema.GroupVersion]*metav1.APIResourceList{}
	for _, k := range s.kinds().all() {
		for _, v := range k.Versions {
			gv := schema.GroupVersion{Group: k.Group, Version: v.Name}
			if lists[gv] == nil {
				lists[gv] = &metav1.APIResourceList{GroupVersion: gv.String()}
			}
			lists[gv].APIResources = append(lists[gv].APIResources, discovered(k, v)...)
		}
	}
	all := make([]*metav1.APIResourceList, 0, len(lists))
	for _, list := range lists {
		slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
		all = append(all, list)
	}
	slices.SortFunc(all, func(a, b *metav1.APIResourceList) int {
		return strings.Compare(a.GroupVersion, b.GroupVersion)
	})
	return all
}

// discovered returns the resource of a version and its status.
func discovered(k *server.Kind, v server.Version) []metav1.APIResource {
	found := []metav1.APIResource{{
		Name: k.Resource, SingularName: k.Singular, Kind: k.Kind,
		Group: k.Group, Version: v.Name, Namespaced: k.Scope != registry.Cluster,
		Verbs: metav1.Verbs{
			"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
		},
	}}
	if v.HasStatus {
		status := found[0]
		status.Name += "/status"
		status.Verbs = metav1.Verbs{"get", "patch", "update"}
		found = append(found, status)
	}
	return found
}

// mapper asks for the kinds each time, because definitions come and go.
type mapper struct {
	kinds func() *kinds
	scope func(of *server.Kind) meta.RESTScope
}

// RESTMapping implements [meta.RESTMapper]. Without versions it returns the one in which objects are stored.
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mappings, err := m.RESTMappings(kind, versions...)
	if err != nil {
		return nil, err
	}
	return mappings[0], nil
}

// RESTMappings implements [meta.RESTMapper].
func (m mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	served, wanted := m.kinds().find(kind), versions
	if len(versions) == 0 && served != nil && len(served.Versions) > 0 {
		wanted = []string{served.Versions[0].Name}
	}
	var mappings []*meta.RESTMapping
	for _, name := range wanted {
		if served.Version(name) != nil {
			mappings = append(mappings, m.mapping(served, name))
		}
	}
	if len(mappings) == 0 {
		return nil, noMatch(kind, versions...)
	}
	return mappings, nil
}

func (m mapper) mapping(of *server.Kind, version string) *meta.RESTMapping {
	return &meta.RESTMapping{
		Resource: resourceOf(of).WithVersion(version), GroupVersionKind: of.WithVersion(version), Scope: m.scope(of),
	}
}

func noMatch(kind schema.GroupKind, versions ...string) error {
	return &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

// KindFor implements [meta.RESTMapper].
func (m mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.listed().KindFor(resource)
}

// KindsFor implements [meta.RESTMapper].
func (m mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.listed().KindsFor(resource)
}

// ResourceFor implements [meta.RESTMapper].
func (m mapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.listed().ResourceFor(input)
}

// ResourcesFor implements [meta.RESTMapper].
func (m mapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.listed().ResourcesFor(input)
}

// ResourceSingularizer implements [meta.RESTMapper].
func (m mapper) ResourceSingularizer(resource string) (string, error) {
	return m.listed().ResourceSingularizer(resource)
}

// listed returns a mapper with all kinds. Few ask for it, and it takes a while. Where several groups have a resource,
// the core group is preferred, and then the first in the alphabet; where several versions have it, the stored one.
func (m mapper) listed() meta.RESTMapper {
	listed := meta.NewDefaultRESTMapper(nil)
	preferred := map[schema.GroupVersion]bool{}
	for _, k := range m.kinds().all() {
		for _, v := range k.Versions {
			mapping := m.mapping(k, v.Name)
			singular := mapping.Resource.GroupVersion().WithResource(k.Singular)
			listed.AddSpecific(mapping.GroupVersionKind, mapping.Resource, singular, mapping.Scope)
			preferred[schema.GroupVersion{Group: k.Group, Version: k.Versions[0].Name}] = true
		}
	}
	prioritized := meta.PriorityRESTMapper{Delegate: listed}
	for _, gv := range slices.SortedFunc(maps.Keys(preferred), func(a, b schema.GroupVersion) int {
		return cmp.Or(strings.Compare(a.Group, b.Group),
			-apiversion.CompareKubeAwareVersionStrings(a.Version, b.Version))
	}) {
		prioritized.ResourcePriority = append(prioritized.ResourcePriority, gv.WithResource(meta.AnyResource))
		prioritized.KindPriority = append(prioritized.KindPriority, gv.WithKind(meta.AnyKind))
	}
	return prioritized
}
