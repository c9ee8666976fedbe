package testing

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgodiscovery "k8s.io/client-go/discovery/fake"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/memserver"
)

var definitionResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// definitionResources are what all API servers serve, in whatever scheme it is.
var definitionResources = &metav1.APIResourceList{
	GroupVersion: apiextensionsv1.SchemeGroupVersion.String(),
	APIResources: []metav1.APIResource{{
		Name: definitionResource.Resource, SingularName: "customresourcedefinition", Kind: "CustomResourceDefinition",
	}},
}

// definitions are the CustomResourceDefinitions in a server.
func definitions(server *memserver.Server) []*apiextensionsv1.CustomResourceDefinition {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, obj := range server.All(definitionResource) {
		if definition := definitionOf(obj); definition != nil {
			all = append(all, definition)
		}
	}
	return all
}

// definitionOf returns a stored CustomResourceDefinition, of whatever Go type, as the typed one; nil if it is not valid.
func definitionOf(obj client.Object) *apiextensionsv1.CustomResourceDefinition {
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if json.Unmarshal(raw, definition) != nil {
		return nil
	}
	return definition
}

// mapServedTypes returns a function that adds to mapper the types of each definition that is stored and established. They
// stay when the definition goes, as they do in the mapper of a manager.
func mapServedTypes(mapper *meta.DefaultRESTMapper) func(schema.GroupVersionResource, client.Object) {
	return func(resource schema.GroupVersionResource, obj client.Object) {
		if resource != definitionResource {
			return
		}
		for _, list := range servedVersions(definitionOf(obj)) {
			_ = addToMapper(mapper, list) // an invalid group or version is served by no API server
		}
	}
}

// isEstablished tells whether an API server serves the type.
func isEstablished(definition *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(definition.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// servedTypes are the resources of the types that are defined and established, the stored version of each first.
func servedTypes(server *memserver.Server) []*metav1.APIResourceList {
	var lists []*metav1.APIResourceList
	for _, definition := range definitions(server) {
		lists = append(lists, servedVersions(definition)...)
	}
	return lists
}

func servedVersions(definition *apiextensionsv1.CustomResourceDefinition) []*metav1.APIResourceList {
	if definition == nil || !isEstablished(definition) {
		return nil
	}
	versions := slices.Clone(definition.Spec.Versions)
	slices.SortStableFunc(versions, func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int {
		return boolRank(b.Storage) - boolRank(a.Storage)
	})
	var lists []*metav1.APIResourceList
	for _, version := range versions {
		if version.Served {
			lists = append(lists, &metav1.APIResourceList{
				GroupVersion: schema.GroupVersion{Group: definition.Spec.Group, Version: version.Name}.String(),
				APIResources: []metav1.APIResource{{
					Name:         definition.Spec.Names.Plural,
					SingularName: definition.Spec.Names.Singular,
					Kind:         definition.Spec.Names.Kind,
					Namespaced:   definition.Spec.Scope == apiextensionsv1.NamespaceScoped,
					Verbs:        metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
				}},
			})
		}
	}
	return lists
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// servingDiscovery is a fake that has preferred resources too, and those that are defined in a server.
type servingDiscovery struct {
	*clientgodiscovery.FakeDiscovery
	server *memserver.Server
}

func newDiscovery(given []*metav1.APIResourceList, server *memserver.Server) servingDiscovery {
	resources := slices.DeleteFunc(slices.Clone(given), func(list *metav1.APIResourceList) bool { return list == nil })
	if server != nil {
		resources = append(resources, servedTypes(server)...)
	}
	return servingDiscovery{
		FakeDiscovery: &clientgodiscovery.FakeDiscovery{Fake: &clientgotesting.Fake{Resources: resources}},
		server:        server,
	}
}

// ServerPreferredResources implements [discovery.ServerResourcesInterface].
func (d servingDiscovery) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	return d.ServerPreferredResourcesWithContext(context.Background())
}

// ServerPreferredResourcesWithContext returns each resource in the first version that it was given in.
func (d servingDiscovery) ServerPreferredResourcesWithContext(context.Context) ([]*metav1.APIResourceList, error) {
	lists := slices.Clone(d.Resources)
	if d.server != nil {
		lists = append(lists, servedTypes(d.server)...)
	}
	known := sets.New[schema.GroupResource]()
	var preferred []*metav1.APIResourceList
	for _, list := range lists {
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
