package platform_test

import (
	"context"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/examples/platform/controller"
	"github.com/espalier-dev/espalier/reconcilers"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// TestExploreSearch looks for stories in which the search alone ends in another way than if it had been created as it
// is in the end. Its phase has then begun for another generation.
func TestExploreSearch(t *testing.T) {
	options := cluster(t)
	options.Always = nil
	options.Operator = func(ctx context.Context, mgr ctrl.Manager) error {
		root := controller.New(reconcilers.NewConfig(mgr, &v1alpha1.Platform{}, syncPeriod))
		root.Reconciler = controller.Search()
		return root.SetupWithManager(ctx, mgr)
	}
	simulation.Explore(t, options, simulation.Exploration{
		Resource: &v1alpha1.Platform{}, Namespace: namespace, Steps: 6,
		Hints: simulation.Hints{".spec.version": {controller.Version1, "1.0.1", "1.1.0", "latest"}},
	})
}
