package platform_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/config"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

// namespace is where the platform is.
const namespace = "observability"

// syncPeriod is that of the operator's main function.
const syncPeriod = 10 * time.Hour

// operator sets up the operator as its main function does.
func operator(ctx context.Context, mgr ctrl.Manager) error {
	return controller.New(reconcilers.NewConfig(mgr, &v1alpha1.Platform{}, syncPeriod)).SetupWithManager(ctx, mgr)
}

// cluster returns options with the operator and what it needs in the cluster.
func cluster(t *testing.T) simulation.Options {
	t.Helper()
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	crd, err := config.CRD()
	if err != nil {
		t.Fatal(err)
	}
	return simulation.Options{
		Operator:    operator,
		Scheme:      scheme,
		Definitions: []*apiextensionsv1.CustomResourceDefinition{crd},
		// A platform brings a type along.
		ChangingDefinitions: true,
		Always:              laws(),
		Objects:             []client.Object{&corev1.Namespace{ObjectMeta: stories.Named("", namespace)}},
	}
}
