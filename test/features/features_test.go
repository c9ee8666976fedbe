package features_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/test/features"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/testing/preview"
)

var app = rtesting.NewFixture(&features.App{
	ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop", UID: "shop-uid", Generation: 1},
	Spec:       features.AppSpec{Version: "2.0.0"},
})

var now = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)

type rows = rtesting.NodeTests[*features.App]

func run(t *testing.T, table rows, make func() reconcilers.SubReconciler[*features.App]) {
	t.Helper()
	scheme, err := features.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range table {
		row.Now = now
		table[name] = row
	}
	table.RunNode(t, scheme, make)
}

// says has a feature report that, and keep the record.
func says(condition metav1.Condition, record apis.FeatureStatus) func(*features.App) {
	return func(app *features.App) {
		record.Condition, record.Since, record.Generation = record.Name+"Ready", metav1.NewTime(now), 1
		for i := range record.Dependents {
			record.Dependents[i].Since = record.Since
		}
		condition.Type = record.Condition
		app.Status.Conditions = append([]metav1.Condition{condition}, app.Status.Conditions...)
		app.Status.Features = []apis.FeatureStatus{record}
	}
}

// settings returns the ConfigMap that a node makes.
func settings(node, name string) client.Object {
	return rtesting.WithController(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "web", Name: name, Labels: map[string]string{reconcilers.NodeLabel: node},
		},
		Data: map[string]string{"version": "2.0.0"},
	}, app, must(features.NewScheme()))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestInfrastructure(t *testing.T) {
	run(t, rows{
		"new": {
			Resource:      app.Object(),
			ExpectCreates: []client.Object{settings("Settings", "shop-settings")},
			ExpectEvents:  []rtesting.Event{rtesting.Normal(app, "Created", `Created ConfigMap "shop-settings"`)},
			ExpectResource: app.With(says(
				metav1.Condition{Status: "True", Reason: "Healthy"},
				apis.FeatureStatus{Name: "Infrastructure", Phase: apis.FeatureHealthy, Passed: true},
			)).Object(),
		},
	}, func() reconcilers.SubReconciler[*features.App] { return features.Infrastructure() })
}

func TestBackend(t *testing.T) {
	run(t, rows{
		"the infrastructure is not ready": {
			Resource: app.Object(),
			ExpectResource: app.With(says(
				metav1.Condition{
					Status: "False", Reason: "PrerequisiteNotMet", Message: "waiting for the condition InfrastructureReady",
				},
				apis.FeatureStatus{Name: "Backend", Phase: apis.FeatureWaiting},
			)).Object(),
		},
	}, func() reconcilers.SubReconciler[*features.App] { return features.Backend() })
}

const noData = `waiting for data "apps.example.com/endpoint", "apps.example.com/password"`

func TestClient(t *testing.T) {
	run(t, rows{
		"no password, and no endpoint": {
			Resource:      app.Object(),
			ExpectCreates: []client.Object{settings("Database", "shop-database")},
			ExpectEvents:  []rtesting.Event{rtesting.Normal(app, "Created", `Created ConfigMap "shop-database"`)},
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.CreateTrackRequest("", "Secret", "web", "shop-password").By("web", "shop"),
			},
			ExpectedResult: reconcilers.Result{RequeueAfter: 5 * time.Minute},
			ExpectResource: app.With(says(
				metav1.Condition{Status: "False", Reason: "Blocked", Message: `Deployment "Client": ` + noData +
					"; Secret web/shop-password: waiting for Secret web/shop-password"},
				apis.FeatureStatus{
					Name: "Client", Phase: apis.FeatureProgressing, Passed: true,
					Dependents: []apis.DependentStatus{
						{Group: "apps", Kind: "Deployment", Name: `"Client"`, State: apis.StateBlocked, Message: noData},
						{
							Kind: "Secret", Namespace: "web", Name: "shop-password", State: apis.StateBlocked,
							Reason: "NotFound", Message: "waiting for Secret web/shop-password",
						},
					},
				},
			)).Object(),
		},
	}, func() reconcilers.SubReconciler[*features.App] { return features.Client() })
}

func TestCertificate(t *testing.T) {
	run(t, rows{
		"no domain": {
			Resource: app.Object(),
			ExpectResource: app.With(says(
				metav1.Condition{Status: "True", Reason: "Disabled"},
				apis.FeatureStatus{Name: "Certificate", Phase: apis.FeatureDisabled},
			)).Object(),
		},
	}, func() reconcilers.SubReconciler[*features.App] { return features.Certificate() })
}

// TestFrontend previews what each version has.
func TestFrontend(t *testing.T) {
	cases := map[string]features.AppSpec{}
	for _, version := range []string{"1.0.0", "1.5.0", "2.0.0-rc.1", "2.0.0"} {
		cases[version+"/plain"] = features.AppSpec{Version: version}
		cases[version+"/all"] = features.AppSpec{Version: version, Metrics: true, Tracing: true}
	}
	preview.Golden(t, preview.Config[features.AppSpec]{
		Dir: "testdata/frontend", Scheme: must(features.NewScheme()), Cases: cases,
		Render: func(spec features.AppSpec) ([]client.Object, error) {
			frontend, err := features.DesiredFrontend(t.Context(), app.With(func(a *features.App) { a.Spec = spec }).Object())
			return []client.Object{frontend}, err
		},
	})
}
