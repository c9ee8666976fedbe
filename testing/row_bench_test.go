package testing_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// deploymentOf is a Deployment as operators write them.
func deploymentOf(name string) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "shop"}
	env := []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "b"},
	}}}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: name,
					Containers: []corev1.Container{
						{Name: "web", Image: "example.com/web:1", Env: env, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}},
						{Name: "side", Image: "example.com/side:1", Env: env},
					},
				},
			},
		},
	}
}

// BenchmarkRowOfTwelveCreates measures a row that expects twelve objects to be created.
func BenchmarkRowOfTwelveCreates(b *testing.B) {
	tc := cmCase{Resource: settings.Object()}
	var objs []*appsv1.Deployment
	for i := range 12 {
		objs = append(objs, deploymentOf(fmt.Sprintf("web-%02d", i)))
		tc.ExpectCreates = append(tc.ExpectCreates, deploymentOf(objs[i].Name))
	}
	tc.Metadata = does(func(ctx context.Context, _ *corev1.ConfigMap) error {
		for _, obj := range objs {
			if err := reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, obj.DeepCopy()); err != nil {
				return err
			}
		}
		return nil
	})
	factory := func(*testing.T, *cmCase, reconcilers.Config) reconcilers.SubReconciler[*corev1.ConfigMap] {
		return tc.Metadata["node"].(reconcilers.SubReconciler[*corev1.ConfigMap])
	}
	run := func(t *testing.T) {
		for b.Loop() {
			tc := tc
			tc.Run(t, scheme, factory)
		}
	}
	all := func(string, string) (bool, error) { return true, nil }
	if !testing.RunTests(all, []testing.InternalTest{{Name: b.Name(), F: run}}) {
		b.Fatal("the case failed")
	}
}

// BenchmarkEqualObjects measures the comparison of two equal Deployments.
func BenchmarkEqualObjects(b *testing.B) {
	expected, actual := client.Object(deploymentOf("web")), client.Object(deploymentOf("web"))
	for b.Loop() {
		if diff := rtesting.DefaultDiffer.ResourceCreate(expected, actual); diff != "" {
			b.Fatal(diff)
		}
	}
}
