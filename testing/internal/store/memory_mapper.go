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
)

// RESTMapper knows the kinds that are served now, unless the options have another mapper.
func (s *memory) RESTMapper() meta.RESTMapper {
	if s.options.Mapper != nil {
		return s.options.Mapper
	}
	return memoryMapper{s}
}

// Resources returns the resources that are served now, as discovery lists them.
func (s *memory) Resources() []*metav1.APIResourceList {
	s.mu.RLock()
	defer s.mu.RUnlock()
	lists := map[schema.GroupVersion]*metav1.APIResourceList{}
	for _, versions := range s.served() {
		for _, r := range versions {
			version := r.gvk.GroupVersion()
			if lists[version] == nil {
				lists[version] = &metav1.APIResourceList{GroupVersion: version.String()}
			}
			lists[version].APIResources = append(lists[version].APIResources, r.discovered()...)
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

// singular is the name of one object in the resource.
func (r *resource) singular() string {
	if r.definition != nil && r.definition.Spec.Names.Singular != "" {
		return r.definition.Spec.Names.Singular
	}
	return strings.ToLower(r.gvk.Kind)
}

// discovered returns the resource and its status.
func (r *resource) discovered() []metav1.APIResource {
	found := []metav1.APIResource{{
		Name: r.resource.Resource, SingularName: r.singular(), Kind: r.gvk.Kind,
		Group: r.gvk.Group, Version: r.gvk.Version, Namespaced: r.kind.Scope != registry.Cluster,
		Verbs: metav1.Verbs{
			"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
		},
	}}
	if r.HasStatus() {
		status := found[0]
		status.Name += "/status"
		status.Verbs = metav1.Verbs{"get", "patch", "update"}
		found = append(found, status)
	}
	return found
}

// mapper asks the store each time, because definitions come and go.
type memoryMapper struct{ store *memory }

// RESTMapping implements [meta.RESTMapper]. Without versions it returns that in which objects are stored.
func (m memoryMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mappings, err := m.RESTMappings(kind, versions...)
	if err != nil {
		return nil, err
	}
	return mappings[0], nil
}

// RESTMappings implements [meta.RESTMapper].
func (m memoryMapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	m.store.mu.RLock()
	defer m.store.mu.RUnlock()
	served := m.store.versions(kind)
	wanted := versions
	if len(versions) == 0 {
		for _, r := range served {
			wanted = []string{r.stored.Version}
		}
	}
	var mappings []*meta.RESTMapping
	for _, version := range wanted {
		if r, ok := served[version]; ok {
			mappings = append(mappings, r.mapping(m.store.state.tables[kind]))
		}
	}
	if len(mappings) == 0 {
		return nil, noMatch(kind, versions...)
	}
	return mappings, nil
}

// KindFor implements [meta.RESTMapper].
func (m memoryMapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.listed().KindFor(resource)
}

// KindsFor implements [meta.RESTMapper].
func (m memoryMapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.listed().KindsFor(resource)
}

// ResourceFor implements [meta.RESTMapper].
func (m memoryMapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.listed().ResourceFor(input)
}

// ResourcesFor implements [meta.RESTMapper].
func (m memoryMapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.listed().ResourcesFor(input)
}

// ResourceSingularizer implements [meta.RESTMapper].
func (m memoryMapper) ResourceSingularizer(resource string) (string, error) {
	return m.listed().ResourceSingularizer(resource)
}

// listed returns a mapper with all kinds. Few ask for it, and it takes a while. Where several groups have a resource,
// the core group is preferred, and then the first in the alphabet; where several versions have it, the stored one.
func (m memoryMapper) listed() meta.RESTMapper {
	listed := meta.NewDefaultRESTMapper(nil)
	preferred := map[schema.GroupVersion]bool{}
	m.store.mu.RLock()
	defer m.store.mu.RUnlock()
	for _, versions := range m.store.served() {
		for _, r := range versions {
			mapping := r.mapping(m.store.state.tables[r.gvk.GroupKind()])
			singular := mapping.Resource.GroupVersion().WithResource(r.singular())
			listed.AddSpecific(r.gvk, mapping.Resource, singular, mapping.Scope)
			preferred[r.stored.GroupVersion()] = true
		}
	}
	prioritized := meta.PriorityRESTMapper{Delegate: listed}
	for _, gv := range slices.SortedFunc(maps.Keys(preferred), func(a, b schema.GroupVersion) int {
		return cmp.Or(
			strings.Compare(a.Group, b.Group), -apiversion.CompareKubeAwareVersionStrings(a.Version, b.Version))
	}) {
		prioritized.ResourcePriority = append(prioritized.ResourcePriority, gv.WithResource(meta.AnyResource))
		prioritized.KindPriority = append(prioritized.KindPriority, gv.WithKind(meta.AnyKind))
	}
	return prioritized
}
