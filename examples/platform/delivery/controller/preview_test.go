package controller_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/version"
	discoveryfake "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/platform/delivery/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/delivery/controller"
	"github.com/espalier-dev/espalier/generator"
	clientfake "github.com/espalier-dev/espalier/testing/fake"
	"github.com/espalier-dev/espalier/testing/preview"
)

// release is what a generator is called for.
type release struct {
	values   v1alpha1.Values
	revision int64
}

func TestChart(t *testing.T) {
	chart, err := controller.Chart()
	if err != nil {
		t.Fatal(err)
	}
	preview.Golden(t, preview.Config[release]{
		Dir:    "testdata/monitor",
		Render: render(t, controller.MonitorPrefix, chart),
		Cases: map[string]release{
			"install": {revision: 1},
			"upgrade": {revision: 2, values: v1alpha1.Values{"retention": "60d"}},
			"without-store": {revision: 1, values: v1alpha1.Values{
				"store": map[string]any{"enabled": false},
				"jobs":  map[string]any{"managedBy": "example.com/demo"},
			}},
		},
	})
}

func TestKustomization(t *testing.T) {
	kustomization, err := controller.Kustomization()
	if err != nil {
		t.Fatal(err)
	}
	preview.Golden(t, preview.Config[release]{
		Dir:    "testdata/agent",
		Render: render(t, controller.AgentPrefix, kustomization),
		Cases: map[string]release{
			"defaults": {revision: 1, values: v1alpha1.Values{"monitor": "https://monitor.example.com"}},
			"interval": {revision: 1, values: v1alpha1.Values{"monitor": "https://monitor.example.com", "interval": "1m"}},
		},
	})
}

// render returns a function that calls the generator as the reconciler does.
func render(t *testing.T, prefix string, made generator.Generator) func(release) ([]client.Object, error) {
	discovery := &discoveryfake.FakeDiscovery{
		Fake:               &clienttesting.Fake{},
		FakedServerVersion: &version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"},
	}
	nothing := clientfake.NewClientBuilder().Build()
	return func(r release) ([]client.Object, error) {
		ctx := generator.NewContext(t.Context()).WithReconcilerName(prefix).
			WithClient(nothing).WithLocalClient(nothing).WithDiscovery(discovery).
			WithComponent(&v1alpha1.Monitor{}).WithComponentNamespace("apps").WithComponentName("main").
			WithComponentDigest("digest").WithComponentRevision(r.revision)
		return made.Generate(ctx, "apps", "main", generator.UnstructurableMap(r.values))
	}
}
