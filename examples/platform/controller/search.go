package controller

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/stash"
)

// IndexName is the name of the ConfigMap of the index of the platform name.
func IndexName(name string) string { return name + "-index" }

// SearchName is the name of the Deployment of the search.
func SearchName(name string) string { return name + "-search" }

// TelemetryName is the name of the ConfigMap with what the search reports about itself.
func TelemetryName(name string) string { return name + "-telemetry" }

// Endpoint is the key in the ConfigMap of the index. The program that builds the index sets it.
const Endpoint = "endpoint"

// SearchReplicas is how many replicas the search has.
const SearchReplicas = int32(2)

// endpoint is where the index answers.
var endpoint = stash.New[string]("platform.example.com/endpoint")

// Search is a feature of the platform that can be switched on, off, and suspended. Its Deployment waits for the data of
// the index. It does without telemetry.
func Search() *feature.Feature[*v1alpha1.Platform] {
	return &feature.Feature[*v1alpha1.Platform]{
		Name: "Search",
		Gate: func(_ context.Context, platform *v1alpha1.Platform) gate.Gate {
			return gate.All(
				gate.When(platform.Spec.Search != nil), gate.Version(platform.Spec.Version, ">= 1.1"))
		},
		Suspended: func(_ context.Context, platform *v1alpha1.Platform) (bool, error) {
			return platform.Spec.Search != nil && platform.Spec.Search.Suspended, nil
		},
		GracePeriod: 5 * time.Minute,
		Reconciler: espalier.Steps(
			espalier.Yield(espalier.Owns("Index", desiredIndex).Labeled(), endpoint, endpointOf),
			espalier.Owns("Engine", desiredEngine).Labeled().Needs(endpoint),
			espalier.Owns("Telemetry", desiredTelemetry).Labeled().Independent().Auxiliary(),
		),
	}
}

func desiredIndex(_ context.Context, platform *v1alpha1.Platform) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: platform.Namespace, Name: IndexName(platform.Name)},
		Data:       map[string]string{"of": platform.Name},
	}, nil
}

// endpointOf reads what the program that builds the index writes.
func endpointOf(index *corev1.ConfigMap) (string, error) {
	if index.Data[Endpoint] == "" {
		return "", espalier.NotReady("NoEndpoint", "the index is not built yet")
	}
	return index.Data[Endpoint], nil
}

func desiredEngine(ctx context.Context, platform *v1alpha1.Platform) (*appsv1.Deployment, error) {
	labels, replicas := map[string]string{"app": SearchName(platform.Name)}, SearchReplicas
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: platform.Namespace, Name: SearchName(platform.Name)},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "search", Image: "registry.example.com/search:" + platform.Spec.Version,
					Env: []corev1.EnvVar{{Name: "INDEX", Value: endpoint.RetrieveOrEmpty(ctx)}},
				}}},
			},
		},
	}, nil
}

func desiredTelemetry(_ context.Context, platform *v1alpha1.Platform) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: platform.Namespace, Name: TelemetryName(platform.Name)},
		Data:       map[string]string{"search": SearchName(platform.Name)},
	}, nil
}
