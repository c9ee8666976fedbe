package apiresources

import (
	"cmp"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/kinds"
	"github.com/espalier-dev/espalier/testing/internal/objects"
)

// definitionResources are what all API servers serve, in any scheme.
var definitionResources = &metav1.APIResourceList{
	GroupVersion: apiextensionsv1.SchemeGroupVersion.String(),
	APIResources: []metav1.APIResource{{
		Name: "customresourcedefinitions", SingularName: "customresourcedefinition", Kind: "CustomResourceDefinition",
	}},
}

// ServedTypes returns the resources of all definitions among the objects that are established.
func ServedTypes(objs []client.Object, scheme *runtime.Scheme) []*metav1.APIResourceList {
	var lists []*metav1.APIResourceList
	for _, obj := range objs {
		kind, err := objects.KindOf(obj, scheme)
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err == nil && kind.GroupKind() == kinds.CustomResourceDefinition && duck.Convert(obj, definition) == nil {
			lists = append(lists, servedVersions(definition)...)
		}
	}
	return lists
}

// servedVersions returns the resources of a definition, the stored version first, and none if it is not established.
func servedVersions(definition *apiextensionsv1.CustomResourceDefinition) []*metav1.APIResourceList {
	established := func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}
	if !slices.ContainsFunc(definition.Status.Conditions, established) {
		return nil
	}
	versions := slices.Clone(definition.Spec.Versions)
	rank := map[bool]int{true: 0, false: 1}
	slices.SortStableFunc(versions, func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int {
		return cmp.Compare(rank[a.Storage], rank[b.Storage])
	})
	var lists []*metav1.APIResourceList
	for _, version := range versions {
		if !version.Served {
			continue
		}
		lists = append(lists, &metav1.APIResourceList{
			GroupVersion: schema.GroupVersion{Group: definition.Spec.Group, Version: version.Name}.String(),
			APIResources: []metav1.APIResource{{
				Name:         definition.Spec.Names.Plural,
				SingularName: definition.Spec.Names.Singular,
				Kind:         definition.Spec.Names.Kind,
				Namespaced:   definition.Spec.Scope == apiextensionsv1.NamespaceScoped,
				Verbs:        strings.Fields("create delete deletecollection get list patch update watch"),
			}},
		})
	}
	return lists
}

// Establish gives a CustomResourceDefinition without conditions those of an established one, as of the given time.
// Other objects stay as they are.
func Establish(obj *unstructured.Unstructured, at time.Time) {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if obj.GroupVersionKind().GroupKind() != kinds.CustomResourceDefinition || len(conditions) > 0 {
		return
	}
	for _, condition := range []string{"NamesAccepted", "Established"} {
		conditions = append(conditions, map[string]any{
			"type": condition, "status": "True", "reason": condition, "message": "",
			"lastTransitionTime": at.Format(time.RFC3339),
		})
	}
	// This cannot fail, since the status of an object is a map.
	_ = unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions")
}
