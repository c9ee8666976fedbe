package features_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/test/features"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

func operator(ctx context.Context, mgr ctrl.Manager) error {
	return features.New(espalier.NewConfig(mgr)).SetupWithManager(ctx, mgr)
}

// certificates is the type that another operator brings.
func certificates() *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name, d.Spec.Group, d.Spec.Scope = "certificates.certs.example.com", features.CertificateKind.Group, "Namespaced"
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "certificates", Kind: "Certificate"}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: features.CertificateKind.Version, Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: new(true),
		}},
		Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
	}}
	return d
}

func cluster(t *testing.T) simulation.Options {
	t.Helper()
	scheme, err := features.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	isApp := func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "App" }
	return simulation.Options{
		Operator: operator, Scheme: scheme,
		Definitions: append(simulation.ReadDefinitions(t, "../../../../../test/features/crd"), certificates()),
		Always:      []simulation.Invariant{simulation.NothingForeign(isApp)},
	}
}

// TestApps tells drawn stories of applications.
func TestApps(t *testing.T) {
	simulation.Explore(t, cluster(t), simulation.Exploration{
		Resource: &features.App{}, Resources: 2, Steps: 6,
	})
}

// TestLife tells the life of one application, in which others do what it waits for.
func TestLife(t *testing.T) { simulation.RunSeeds(t, cluster(t), life) }

func life(w *simulation.World) {
	app := &features.App{ObjectMeta: stories.Named("default", "shop"), Spec: features.AppSpec{
		Version: "1.0.0", Metrics: true, Domain: "a.example.com",
	}}
	w.Create(app)
	w.Rest()
	says(w, app, map[string]string{
		"InfrastructureReady": "Healthy", "BackendReady": "Healthy", "ClientReady": "Degraded", "BatchReady": "Creating",
		"CertificateReady": "Degraded", "FrontendReady": "Healthy", "Healthy": "Degraded", "Ready": "Degraded",
	})

	secret := &corev1.Secret{ObjectMeta: stories.Named("default", "shop-password"), StringData: map[string]string{"password": "a"}}
	w.Create(secret)
	database := &corev1.ConfigMap{ObjectMeta: stories.Named("default", "shop-database")}
	w.As("database").Update(database, func() { database.Annotations = map[string]string{"endpoint": "db:5432"} })
	batch := &appsv1.Deployment{ObjectMeta: stories.Named("default", "shop-batch")}
	w.As("batch").Update(batch, func() { batch.Annotations = map[string]string{"worked": "yes"} })
	certificate := &unstructured.Unstructured{}
	certificate.SetGroupVersionKind(features.CertificateKind)
	certificate.SetNamespace("default")
	certificate.SetName("shop")
	w.As("certs").Status(certificate, func() { certificate.Object["status"] = map[string]any{"state": "Issued"} })
	w.Update(app, func() { app.Spec.Version = "2.0.0" })
	w.Rest()
	healthy := map[string]string{
		"InfrastructureReady": "Healthy", "BackendReady": "Healthy", "ClientReady": "Healthy", "BatchReady": "Healthy",
		"CertificateReady": "Healthy", "FrontendReady": "Healthy", "Healthy": "Healthy", "Ready": "Ready",
	}
	says(w, app, healthy)

	w.Update(app, func() { app.Spec.Suspended, app.Spec.Domain, app.Spec.Metrics = true, "", false })
	w.Rest()
	says(w, app, map[string]string{
		"InfrastructureReady": "Healthy", "BackendReady": "Suspended", "ClientReady": "Suspended", "BatchReady": "Suspended",
		"CertificateReady": "Disabled", "FrontendReady": "Suspended",
	})
	if w.Exists(certificate) || w.Exists(&corev1.ConfigMap{ObjectMeta: stories.Named("default", "shop-metrics")}) {
		w.Error("what is switched off is still there")
	}
	w.Update(app, func() { app.Spec.Suspended = false })
	w.Rest()
	healthy["CertificateReady"], healthy["Healthy"] = "Disabled", "Disabled"
	says(w, app, healthy)
	w.Idle(time.Hour)
	w.Delete(app)
	w.Rest()
	w.Idle(time.Hour)
	if w.Exists(app) || w.Exists(batch) || !w.Exists(secret) {
		w.Error("the application, and what it owns, has to be gone, and the Secret of the user has to be there")
	}
}

// says fails the story unless the conditions have these reasons.
func says(w *simulation.World, app *features.App, reasons map[string]string) {
	w.Helper()
	w.Get(app)
	for name, want := range reasons {
		if got := meta.FindStatusCondition(app.Status.Conditions, name); got == nil || got.Reason != want {
			w.Errorf("the condition %s is %+v, want it %s", name, got, want)
		}
	}
}
