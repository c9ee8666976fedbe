// Package software makes the objects of a component.
package software

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/component/api/v9alpha9"
	"github.com/espalier-dev/espalier/generator"
)

// NewGenerator returns the generator of the objects.
func NewGenerator() (generator.Generator, error) {
	return generator.GeneratorFunc(objects), nil
}

// Dependents returns an object of each type that the generator makes. The role of the operator is derived from them.
func Dependents() []client.Object {
	return []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}}
}

// objects returns the same objects for the same resource: it depends on nothing else.
func objects(
	ctx context.Context, namespace, name string, _ generator.Unstructurable,
) ([]client.Object, error) {
	resource, err := generator.ComponentFromContext(ctx)
	if err != nil {
		return nil, err
	}
	return objectsOf(namespace, name, &resource.(*v9alpha9.Placeholder).Spec), nil
}

func objectsOf(namespace, name string, spec *v9alpha9.PlaceholderSpec) []client.Object {
	labels := map[string]string{"app.kubernetes.io/name": "placeholder", "app.kubernetes.io/instance": name}
	settings := &corev1.ConfigMap{Data: map[string]string{"greeting": "hello"}}
	settings.Namespace, settings.Name, settings.Labels = namespace, name, labels
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name, deployment.Labels = namespace, name, labels
	// It is in a later wave than the settings.
	deployment.Annotations = map[string]string{"espalier.dev/apply-order": "1"}
	deployment.Spec.Replicas = &spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "main", Image: spec.Image,
		EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
		}}},
	}}
	return []client.Object{settings, deployment}
}
