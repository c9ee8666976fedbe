package edit_test

import (
	"fmt"

	"github.com/espalier-dev/espalier/edit"
	"github.com/espalier-dev/espalier/feature/gate"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ExampleApply() {
	web := func(change func(*corev1.Container) error) func(*corev1.PodTemplateSpec) error {
		return func(pods *corev1.PodTemplateSpec) error { return edit.Container(pods, "web", change) }
	}
	changesOf := func(version string, tracing bool) []edit.Change[*appsv1.Deployment] {
		return []edit.Change[*appsv1.Deployment]{
			edit.ForPods[*appsv1.Deployment]("old-port", gate.Version(version, "< 2"),
				web(func(c *corev1.Container) error {
					return edit.EnsureEnv(c, corev1.EnvVar{Name: "PORT", Value: "80"})
				})),
			edit.ForPods[*appsv1.Deployment]("tracing", gate.When(tracing),
				web(func(c *corev1.Container) error {
					return edit.EnsureEnv(c, corev1.EnvVar{Name: "TRACING", Value: "true"})
				})),
		}
	}
	baseline := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	baseline.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "web", Env: []corev1.EnvVar{{Name: "PORT", Value: "8080"}},
	}}

	for _, version := range []string{"1.9.0", "2.0.0", "latest"} {
		names, _ := edit.Enabled(changesOf(version, true)...)
		deployment, err := edit.Apply(baseline, changesOf(version, true)...)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(version, names, deployment.Spec.Template.Spec.Containers[0].Env)
	}
	// Output:
	// 1.9.0 [old-port tracing] [{PORT 80 nil} {TRACING true nil}]
	// 2.0.0 [tracing] [{PORT 8080 nil} {TRACING true nil}]
	// edit Deployment shop/web: gate of change "old-port": version "latest" is invalid: invalid semantic version
}
