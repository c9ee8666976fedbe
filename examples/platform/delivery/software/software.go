// Package software has what the operator delivers: a Helm chart and a kustomization, written as if others had.
package software

import (
	"embed"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Folder has the software.
//
//go:embed all:monitor all:agent
var Folder embed.FS

const (
	// Monitor is the path of the chart.
	Monitor = "monitor"
	// Agent is the path of the kustomization.
	Agent = "agent/overlay"
)

// ProbeTypeName is the name of the definition of the type that the chart brings into the cluster.
const ProbeTypeName = "probes.monitor.example.com"

// ProbeKind is that type.
var ProbeKind = schema.GroupVersionKind{Group: "monitor.example.com", Version: "v1", Kind: "Probe"}

// ProbeType returns the definition of that type.
func ProbeType() (*apiextensionsv1.CustomResourceDefinition, error) {
	manifest, err := Folder.ReadFile("monitor/crds/probes.yaml")
	if err != nil {
		return nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	return definition, yaml.UnmarshalStrict(manifest, definition)
}

// NewProbe returns a probe.
func NewProbe(namespace, name string) *unstructured.Unstructured {
	probe := &unstructured.Unstructured{}
	probe.SetGroupVersionKind(ProbeKind)
	probe.SetNamespace(namespace)
	probe.SetName(name)
	probe.Object["spec"] = map[string]any{"target": "https://" + name + ".example.com"}
	return probe
}
