package helm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// TestIdleOnAPIServer: a reconcile that finds nothing changed renders nothing, and makes no request but for what the
// chart looks up.
func TestIdleOnAPIServer(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		line     string
		requests int
	}{
		"plain":        {`{{ .Values.value }}`, 0},
		"Capabilities": {`{{ .Capabilities.KubeVersion.Major }}`, 0},
		"lookup":       {`{{ len (lookup "v1" "ConfigMap" .Release.Namespace "nothing") }}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startChart(t, plane.Namespace(t), files{
				"templates/a.yaml": configMap("plain", "  value: v"+row.line+"\n"),
			}.folder(), helm.Options{})
			w.deploy("value: first")
			w.ready()
			controlplanetest.Quiet(w, w.requests)
			rendered := w.made.rendered.Load()
			if !generator.ReportsInputs(generator.NewGenerator(w.made)) {
				t.Error("want the inputs to be reported")
			}
			for i := range 3 {
				w.requests.Reset()
				w.touch(fmt.Sprint(i))
				if n := w.requests.Total(); n != row.requests {
					t.Errorf("want %d requests, got %d: %s", row.requests, n, w.requests)
				}
			}
			if n := w.made.rendered.Load(); n != rendered {
				t.Errorf("want no rendering, got %d", n-rendered)
			}
		})
	}
}

// touch annotates the component, and waits until it was reconciled for that and is at rest.
func (w *takeOverWorld) touch(value string) {
	w.Helper()
	before := w.made.asked.Load()
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"example.com/touched":"`+value+`"}}}`))
	if err := w.client.Patch(w.Context(), w.assembly, patch); err != nil {
		w.Fatal(err)
	}
	controlplanetest.Eventually(w, "it is not reconciled", func(context.Context) error {
		if w.made.asked.Load() == before {
			return errors.New("it was not reconciled")
		}
		return nil
	})
	controlplanetest.Rest(w, w.requests)
}
