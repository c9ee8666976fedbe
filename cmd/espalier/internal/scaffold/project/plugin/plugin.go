package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/plugins"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plugin is what this program provides. More types of the category have more entries.
var plugin = plugins.Plugin{
	Category: "placeholder-category",
	Types: []plugins.Type{
		{Name: "placeholder", Versions: []string{newest, "1"}, Dependents: dependents},
	},
}

// newest is the version that a resource gets which asks for none.
const newest = "2"

// Spec is what the plugin uses of the spec of a resource. It decides what users of the capability write there.
type Spec struct {
	// Replicas is how many pods there are. Default: 1.
	Replicas *int32 `json:"replicas,omitempty"`
	// Image is what the pods run. Default: that of the version.
	Image string `json:"image,omitempty"`
}

// maxName is how long the name of a Service, and the value of a label, may be.
const maxName = 63

// port is where the server listens.
const port = 8080

// dependents returns all objects that a resource needs, in their order. The same request has to have the same answer,
// whatever the time and the environment are.
func dependents(_ context.Context, r plugins.Request) ([]*plugins.Dependent, error) {
	spec := Spec{Image: imageOf(r.Version)}
	if err := r.Owner.Decode(&spec); err != nil {
		return nil, plugins.Invalid(err.Error())
	}
	if spec.Replicas != nil && *spec.Replicas < 0 {
		return nil, plugins.Invalid("spec.replicas must not be negative")
	}
	if name := nameOf(r.Owner); len(name) > maxName {
		return nil, plugins.Invalid(fmt.Sprintf("the name %s is longer than %d characters", name, maxName))
	}
	return []*plugins.Dependent{
		plugins.Owns("settings", settings(r.Owner)),
		plugins.Owns("server", server(r.Owner, spec)).After("settings"),
		plugins.Owns("service", service(r.Owner)),
	}, nil
}

// imageOf returns the image of a version.
func imageOf(version string) string {
	return "registry.example.com/placeholder:" + cmp.Or(version, newest)
}

func settings(owner plugins.Owner) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(owner), Labels: labelsOf(owner)},
		Data:       map[string]string{"name": owner.Name},
	}
}

func server(owner plugins.Owner, spec Spec) *appsv1.Deployment {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: nameOf(owner), Labels: labelsOf(owner)}}
	deployment.Spec.Replicas = spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(owner)}
	deployment.Spec.Template.Labels = labelsOf(owner)
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "server", Image: spec.Image,
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port}},
		EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: nameOf(owner)},
		}}},
	}}
	return deployment
}

func service(owner plugins.Owner) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(owner), Labels: labelsOf(owner)},
		Spec: corev1.ServiceSpec{
			Selector: labelsOf(owner), Ports: []corev1.ServicePort{{Name: "http", Port: port}},
		},
	}
}

// nameOf returns the name of the objects of a resource. Resources of another kind may have the same name.
func nameOf(owner plugins.Owner) string {
	return owner.Name + "-" + strings.ToLower(owner.Kind) + "-placeholder"
}

func labelsOf(owner plugins.Owner) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "placeholder", "app.kubernetes.io/instance": nameOf(owner)}
}
