package testing_test

import (
	"context"
	"flag"
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

// rowOfTwelveCreates returns a row that expects twelve objects to be created, and its factory.
func rowOfTwelveCreates() (cmCase, rtesting.SubReconcilerFactory[*corev1.ConfigMap]) {
	tc := cmCase{Resource: settings.Object()}
	var objs []*appsv1.Deployment
	for i := range 12 {
		objs = append(objs, deploymentOf(fmt.Sprintf("web-%02d", i)))
		tc.ExpectCreates = append(tc.ExpectCreates, deploymentOf(objs[i].Name))
	}
	tc.Metadata = does(func(ctx context.Context, _ *corev1.ConfigMap) error {
		for _, obj := range objs {
			err := reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, obj.DeepCopy())
			if client.IgnoreAlreadyExists(err) != nil {
				return err
			}
		}
		return nil
	})
	return tc, func(*testing.T, *cmCase, reconcilers.Config) reconcilers.SubReconciler[*corev1.ConfigMap] {
		return tc.Metadata["node"].(reconcilers.SubReconciler[*corev1.ConfigMap])
	}
}

// benchmarkRow measures runs of a row.
func benchmarkRow(b *testing.B, run func(t *testing.T)) {
	all := func(string, string) (bool, error) { return true, nil }
	loop := func(t *testing.T) {
		for b.Loop() {
			run(t)
		}
	}
	if !testing.RunTests(all, []testing.InternalTest{{Name: b.Name(), F: loop}}) {
		b.Fatal("the case failed")
	}
}

func BenchmarkRowOfTwelveCreates(b *testing.B) {
	tc, factory := rowOfTwelveCreates()
	benchmarkRow(b, func(t *testing.T) {
		tc := tc
		tc.Run(t, scheme, factory)
	})
}

// BenchmarkNodeRowOfTwelveCreates measures the same row on the API server of Kubernetes, without and with replays.
func BenchmarkNodeRowOfTwelveCreates(b *testing.B) {
	tc, factory := rowOfTwelveCreates()
	for _, faults := range []string{"off", "default"} {
		b.Run("faults="+faults, func(b *testing.B) {
			if err := flag.Set("rtesting.faults", faults); err != nil {
				b.Fatal(err)
			}
			defer func() { _ = flag.Set("rtesting.faults", "default") }()
			benchmarkRow(b, func(t *testing.T) { cmNodes{"row": tc}.Run(t, scheme, factory) })
		})
	}
}

// BenchmarkNodeRowWithoutEffect measures a row that does nothing.
func BenchmarkNodeRowWithoutEffect(b *testing.B) {
	if err := flag.Set("rtesting.faults", "off"); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = flag.Set("rtesting.faults", "default") }()
	tc := cmCase{Resource: settings.Object(), Metadata: does(nothing)}
	benchmarkRow(b, func(t *testing.T) { runNodes(t, cmNodes{"row": tc}) })
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
