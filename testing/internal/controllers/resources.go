package controllers

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// discover returns the resources to watch: all that can be listed, watched and deleted, as the garbage collector of a
// cluster does, but Events. Those of definitions are among them.
func discover(config *rest.Config) ([]resource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, err
	}
	var all []resource
	seen := map[schema.GroupKind]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, found := range list.APIResources {
			r := resource{version.WithResource(found.Name), found.Kind, found.Namespaced}
			wanted, isTyped := typed[r.groupKind()]
			if seen[r.groupKind()] || isTyped && wanted != version.Version || !watchable(found) {
				continue
			}
			seen[r.groupKind()] = true
			all = append(all, r)
		}
	}
	return all, nil
}

func watchable(r metav1.APIResource) bool {
	return r.Kind != "Event" && !slices.ContainsFunc([]string{"list", "watch", "delete"}, func(verb string) bool {
		return !slices.Contains(r.Verbs, verb)
	})
}

// newMapper returns a mapper for the resources of which there are types.
func newMapper(resources []resource) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, r := range resources {
		scope := meta.RESTScopeRoot
		if r.namespaced {
			scope = meta.RESTScopeNamespace
		}
		if typed[r.groupKind()] == r.Version {
			gvk := r.groupKind().WithVersion(r.Version)
			mapper.AddSpecific(gvk, r.GroupVersionResource, r.GroupVersionResource, scope)
		}
	}
	return mapper
}

// defined returns the resource of a definition; ok is false if it is not served, or not any more.
func defined(d *apiextensionsv1.CustomResourceDefinition) (r resource, ok bool) {
	established := false
	for _, c := range d.Status.Conditions {
		established = established || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}
	for _, version := range d.Spec.Versions {
		if !version.Served || !established {
			continue
		}
		gvr := schema.GroupVersionResource{Group: d.Spec.Group, Version: version.Name, Resource: d.Spec.Names.Plural}
		return resource{gvr, d.Status.AcceptedNames.Kind, d.Spec.Scope == apiextensionsv1.NamespaceScoped}, true
	}
	return resource{}, false
}
