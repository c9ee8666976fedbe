package controller

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DashboardKind is the type that the platform brings into the cluster. It is not known to the scheme: no operator has
// Go types of all that it installs.
var DashboardKind = schema.GroupVersionKind{Group: "observability.example.com", Version: "v1", Kind: "Dashboard"}

// DashboardCRDName is the name of the definition of that type.
const DashboardCRDName = "dashboards.observability.example.com"

// NewDashboard returns a dashboard.
func NewDashboard(namespace, name, title string) *unstructured.Unstructured {
	dashboard := &unstructured.Unstructured{}
	dashboard.SetGroupVersionKind(DashboardKind)
	dashboard.SetNamespace(namespace)
	dashboard.SetName(name)
	dashboard.Object["spec"] = map[string]any{"title": title}
	return dashboard
}

// dashboardCRD is the definition of the type.
func dashboardCRD() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	condition := apiextensionsv1.JSONSchemaProps{
		Type:     "object",
		Required: []string{"type", "status"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"type": text, "status": text, "reason": text, "message": text,
			"lastTransitionTime": {Type: "string", Format: "date-time"},
		},
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: DashboardCRDName},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: DashboardKind.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: DashboardKind.Kind, ListKind: "DashboardList", Plural: "dashboards", Singular: "dashboard",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: DashboardKind.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"title": text}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"conditions": {
								Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition},
							},
						}},
					},
				}},
			}},
		},
	}
}
