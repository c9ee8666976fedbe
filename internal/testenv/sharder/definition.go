package sharder

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Definition returns the definition of ControllerRings.
func Definition() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	resource := apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"group", "resource"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"group": text, "resource": text},
	}
	main := *resource.DeepCopy()
	main.Properties["controlledResources"] = listOf(resource)
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"resources": listOf(main), "namespaceSelector": anything,
	}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "controllerrings." + RingKind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: RingKind.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "controllerrings", Singular: "controllerring",
				Kind: RingKind.Kind, ListKind: RingKind.Kind + "List",
			},
			Scope: apiextensionsv1.ClusterScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: RingKind.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type:       "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": anything},
				}},
			}},
		},
	}
}

// anything is the schema of an object of any fields.
var anything = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}

// listOf returns the schema of a list of resources.
func listOf(items apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{
		Type: "array", XListType: new("map"), XListMapKeys: []string{"group", "resource"},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items},
	}
}
