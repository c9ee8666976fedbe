// Package software makes the objects of a component from a kustomization.
package software

import (
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/kustomize"
)

//go:embed all:kustomization
var folder embed.FS

// NewGenerator returns the generator of the objects. The templates of the kustomization see what ToUnstructured of the
// spec returns.
func NewGenerator() (generator.Generator, error) {
	return kustomize.NewGenerator(folder, "kustomization", kustomize.Options{})
}

// Dependents returns an object of each type in the kustomization. The role of the operator is derived from them.
func Dependents() []client.Object {
	return []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}}
}
