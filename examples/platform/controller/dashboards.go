package controller

import (
	_ "embed"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
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

//go:embed dashboards.yaml
var dashboardManifest []byte

// dashboardCRD returns the definition of the type.
func dashboardCRD() (*apiextensionsv1.CustomResourceDefinition, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	return definition, yaml.UnmarshalStrict(dashboardManifest, definition)
}

// dashboardType returns the definition of the type, for those who read from it how the resource is called.
func dashboardType() *apiextensionsv1.CustomResourceDefinition {
	definition, err := dashboardCRD()
	if err != nil {
		// The generator returns the error.
		return &apiextensionsv1.CustomResourceDefinition{}
	}
	return definition
}
