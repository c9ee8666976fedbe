package takeover_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	gocmp "github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

// copyAnnotations copies annotations under the name of the old reconciler to where every component reads them.
func copyAnnotations(_, _ string, objects []client.Object) ([]client.Object, error) {
	for _, object := range objects {
		annotations := map[string]string{}
		for key, value := range object.GetAnnotations() {
			annotations[key] = value
			if name, ok := strings.CutPrefix(key, oldName+"/"); ok {
				annotations[generator.SharedPrefix+"/"+name] = value
			}
		}
		object.SetAnnotations(annotations)
	}
	return objects, nil
}

// TestDocumented expects that the page has the code that the operator of these tests runs.
func TestDocumented(t *testing.T) {
	lines := func(file, prefix string) []string {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, function, found := strings.Cut(string(content), prefix+"// copyAnnotations ")
		function, _, ended := strings.Cut(function, "\n"+prefix+"}\n")
		if !found || !ended {
			t.Fatalf("%s has no function copyAnnotations", file)
		}
		return strings.Split(strings.ReplaceAll(function, "\n"+prefix, "\n"), "\n")
	}
	if diff := gocmp.Diff(lines("operator_test.go", ""), lines("../../../../docs/migration.md", "   ")); diff != "" {
		t.Errorf("the function in docs/migration.md differs (-here, +there):\n%s", diff)
	}
}

// startOperator starts the new operator for a namespace. Its requests are counted.
func startOperator(t *testing.T, namespace string) (requests *controlplane.Requests, stop func()) {
	t.Helper()
	config, requests := controlplane.CountRequests(plane.Config(t))
	options := ctrl.Options{
		Scheme: resources.NewScheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	}
	options.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	objects := generator.NewGenerator(resources.AssemblyGenerator()).
		WithObjectTransformer(generator.ObjectTransformerFunc(copyAnnotations))
	root := component.NewComponentRoot(newPrefix, objects, component.Options[*resources.Assembly]{
		Config: reconcilers.NewConfig(mgr, &resources.Assembly{}, time.Hour), FenceMargin: -1,
	})
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	})
	t.Cleanup(stop)
	return requests, stop
}
