package component_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane"
	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var plane = controlplanetest.Shared{Options: controlplane.Options{
	CRDs: []*apiextensionsv1.CustomResourceDefinition{resources.CRD(), resources.AssemblyCRD(), referrerCRD()},
}}

func TestMain(m *testing.M) {
	os.Exit(plane.Main(m))
}

// operator deploys components on the real API server, with its requests counted.
type operator struct {
	requests *controlplane.Requests
	stop     func()
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

var assemblyScheme = resources.NewScheme()

// exampleCluster returns the context of a node that runs on a cluster in memory, which has the objects.
func exampleCluster(objects ...client.Object) (context.Context, reconcilers.Config) {
	c := rtesting.ExpectConfig{
		Scheme:                 resources.NewScheme(),
		GivenObjects:           objects,
		StatusSubResourceTypes: []client.Object{&resources.Widget{}},
		WithReactors:           []rtesting.ReactionFunc{born},
	}
	ctx := reconcilers.StashConfig(context.Background(), c.Config())
	return reconcilers.StashOriginalConfig(ctx, c.Config()), c.Config()
}

// born gives an object that is created what an API server gives it and the fake client does not.
func born(action rtesting.Action) (bool, runtime.Object, error) {
	if create, ok := action.(rtesting.CreateAction); ok && action.GetVerb() == "create" && action.GetSubresource() == "" {
		obj := create.GetObject().(client.Object)
		obj.SetCreationTimestamp(metav1.NewTime(time.UnixMilli(1000)))
		obj.SetUID(types.UID(obj.GetName() + "-uid"))
	}
	return false, nil, nil
}

func isGone(c client.Client, object client.Object) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
		if apierrs.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	}
}

// assemble creates a component, and returns a function that waits until it is ready.
func assemble(t *testing.T, c client.Client, a *resources.Assembly) (ready func(what string)) {
	t.Helper()
	if err := c.Create(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return func(what string) {
		t.Helper()
		controlplanetest.Eventually(t, what, func(ctx context.Context) error {
			return hasState(ctx, c, a, apis.ComponentReady)
		})
	}
}
