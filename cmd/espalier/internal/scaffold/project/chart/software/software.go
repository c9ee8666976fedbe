// Package software makes the objects of a component from a Helm chart.
package software

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"
)

//go:embed all:chart
var folder embed.FS

// NewGenerator returns the generator of the objects. The values of the chart are what ToUnstructured of the spec
// returns.
func NewGenerator() (generator.Generator, error) {
	return helm.NewGenerator(folder, "chart", helm.Options{})
}

// Dependents returns an object of each type in the chart. The role of the operator is derived from them.
func Dependents() []client.Object {
	return []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}}
}
