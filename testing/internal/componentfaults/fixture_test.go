package componentfaults_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.AssemblyCRD()},
}}

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m))
}

func newManager(t testing.TB, config *rest.Config, options ctrl.Options) ctrl.Manager {
	t.Helper()
	options.Scheme = resources.NewScheme()
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.Controller.SkipNameValidation = new(true)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		t.Fatalf("no manager: %v", err)
	}
	return mgr
}

// live returns a client that reads past every cache, and is not counted.
func live(t testing.TB) client.Client {
	t.Helper()
	c, err := client.New(plane.Config(t), client.Options{Scheme: resources.NewScheme()})
	if err != nil {
		t.Fatalf("no client: %v", err)
	}
	return c
}

var eventually = controlplanetest.Eventually

func hasState(ctx context.Context, c client.Client, a *resources.Assembly, state apis.ComponentState) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
		return err
	}
	if a.Status.State != state || a.Status.ObservedGeneration != a.Generation && state == apis.ComponentReady {
		return fmt.Errorf("the state is %q of generation %d, not %q of %d: %v", a.Status.State, a.Status.ObservedGeneration, state, a.Generation, a.Status.Conditions)
	}
	return nil
}
