package component_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startOwn starts a control plane for one test.
func startOwn(t *testing.T, options controlplane.Options) (*controlplane.Environment, client.Client) {
	t.Helper()
	env, err := controlplane.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(env.Config(), client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return env, c
}
