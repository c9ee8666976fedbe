package edit_test

import (
	"fmt"

	"github.com/espalier-dev/espalier/edit"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func ExamplePodTemplate() {
	deployment := &appsv1.Deployment{}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}

	trace := func(pods *corev1.PodTemplateSpec) error {
		return edit.Container(pods, "web", func(web *corev1.Container) error {
			return edit.EnsureEnv(web, corev1.EnvVar{Name: "TRACING", Value: "true"})
		})
	}
	for range 2 {
		if err := edit.PodTemplate(deployment, trace); err != nil {
			fmt.Println(err)
		}
	}
	text, _ := yaml.Marshal(deployment.Spec.Template.Spec)
	fmt.Print(string(text))
	fmt.Println(edit.PodTemplate(&corev1.ConfigMap{}, trace))
	// Output:
	// containers:
	// - env:
	//   - name: TRACING
	//     value: "true"
	//   image: web:1
	//   name: web
	//   resources: {}
	// edit ConfigMap: the kind has no pod template that is known
}

func ExampleMergeYAML() {
	config := &corev1.ConfigMap{Data: map[string]string{"app.yaml": "log: {level: info, file: /tmp/log}\nport: 80\n"}}
	fmt.Println(edit.MergeYAML(config, "app.yaml", "log: {level: debug, file: null}"))
	fmt.Print(config.Data["app.yaml"])
	// Output:
	// <nil>
	// log:
	//   level: debug
	// port: 80
}
