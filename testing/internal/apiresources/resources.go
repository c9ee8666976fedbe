// Package apiresources serves discovery and a REST mapper to code under test. They know the given resources, and those
// of given CustomResourceDefinitions.
package apiresources

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	clientgodiscovery "k8s.io/client-go/discovery/fake"
	clientgotesting "k8s.io/client-go/testing"
)

// NewMapper returns a mapper that knows CustomResourceDefinitions and the resources of the lists, and what is wrong
// with the lists that it leaves out. A nil list counts as empty.
func NewMapper(lists []*metav1.APIResourceList) (mapper *meta.DefaultRESTMapper, problems []string) {
	mapper = meta.NewDefaultRESTMapper(nil)
	_ = add(mapper, definitionResources) // it is valid
	for i, list := range lists {
		if list == nil {
			continue
		}
		if err := add(mapper, list); err != nil {
			problems = append(problems, fmt.Sprintf("GivenAPIResources[%d] has no valid group and version: %v", i, err))
		}
	}
	return mapper, problems
}

func add(mapper *meta.DefaultRESTMapper, list *metav1.APIResourceList) error {
	listed, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return err
	}
	for _, resource := range list.APIResources {
		gv, scope := groupVersionOf(listed, resource), meta.RESTScopeRoot
		if resource.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		plural, singular := gv.WithResource(resource.Name), gv.WithResource(resource.SingularName)
		mapper.AddSpecific(gv.WithKind(resource.Kind), plural, singular, scope)
	}
	return nil
}

// groupVersionOf returns the group and version of a resource, which override those of its list.
func groupVersionOf(list schema.GroupVersion, resource metav1.APIResource) schema.GroupVersion {
	list.Group, list.Version = cmp.Or(resource.Group, list.Group), cmp.Or(resource.Version, list.Version)
	return list
}

// Valid returns the lists with a valid group and version.
func Valid(lists []*metav1.APIResourceList) []*metav1.APIResourceList {
	return slices.DeleteFunc(slices.Clone(lists), func(list *metav1.APIResourceList) bool {
		return list == nil || add(meta.NewDefaultRESTMapper(nil), list) != nil
	})
}

// fakeDiscovery is client-go's fake with preferred resources.
type fakeDiscovery struct {
	*clientgodiscovery.FakeDiscovery
}

// NewDiscovery returns the discovery of the given resources.
func NewDiscovery(given []*metav1.APIResourceList) discovery.DiscoveryInterface {
	return newFakeDiscovery(slices.DeleteFunc(slices.Clone(given), func(list *metav1.APIResourceList) bool {
		return list == nil
	}))
}

func newFakeDiscovery(resources []*metav1.APIResourceList) fakeDiscovery {
	return fakeDiscovery{FakeDiscovery: &clientgodiscovery.FakeDiscovery{
		Fake: &clientgotesting.Fake{Resources: resources},
	}}
}

// ServerPreferredResources implements [discovery.ServerResourcesInterface].
func (d fakeDiscovery) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	return d.ServerPreferredResourcesWithContext(context.Background())
}

// ServerPreferredResourcesWithContext returns each resource in the first version that it was given in.
func (d fakeDiscovery) ServerPreferredResourcesWithContext(context.Context) ([]*metav1.APIResourceList, error) {
	known := sets.New[schema.GroupResource]()
	var preferred []*metav1.APIResourceList
	for _, list := range d.Resources {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		kept := list.DeepCopy()
		kept.APIResources = slices.DeleteFunc(kept.APIResources, func(r metav1.APIResource) bool {
			resource := groupVersionOf(gv, r).WithResource(r.Name).GroupResource()
			if strings.Contains(r.Name, "/") || known.Has(resource) {
				return true
			}
			known.Insert(resource)
			return false
		})
		if len(kept.APIResources) > 0 {
			preferred = append(preferred, kept)
		}
	}
	return preferred, nil
}
