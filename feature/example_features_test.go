package feature_test

import (
	"context"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	appsv1 "k8s.io/api/apps/v1"
)

// saying returns a node that says how a Deployment is, in place of one that deploys it.
func saying(state apis.State) reconcilers.SubReconciler[*Shop] {
	return &reconcilers.SyncReconciler[*Shop]{
		Name: "Deployment",
		Sync: func(ctx context.Context, _ *Shop) error {
			reconcilers.SupervisorOf(ctx).Observe(reconcilers.ObservedObject{
				Kind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: "default", Name: "web",
				Health: &apis.Health{State: state, Grade: apis.StateDown, Message: "no pod runs"},
			})
			return nil
		},
	}
}

func ExampleFeatures() {
	features := &feature.Features[*Shop]{
		Condition: "Ready",
		Features: []*feature.Feature[*Shop]{
			{Name: "Search", Reconciler: saying(apis.StateHealthy)},
			{Name: "Checkout", Reconciler: saying(apis.StateFailing)},
			{Name: "Reports", Reconciler: saying(apis.StateCreating)},
		},
	}
	shop := &Shop{}
	ctx := rtime.StashNow(context.Background(), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	if _, err := features.Reconcile(ctx, shop); err != nil {
		fmt.Println(err)
	}
	for _, c := range shop.Status.Conditions {
		fmt.Println(c.Type, c.Status, c.Reason, c.Message)
	}
	// Output:
	// CheckoutReady False Failing Deployment default/web: no pod runs
	// Ready False Failing Checkout: Deployment default/web: no pod runs
	// ReportsReady False Creating Deployment default/web: no pod runs
	// SearchReady True Healthy
}
