package lifecycle_test

import (
	"context"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/apis"
	gates "github.com/espalier-dev/espalier/feature"
	"github.com/espalier-dev/espalier/lifecycle"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reporting returns a node that says how a Deployment is, in place of one that deploys it.
func reporting(state apis.State) reconcilers.SubReconciler[*Shop] {
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

func ExampleFeature() {
	search := func(state apis.State) *lifecycle.Feature[*Shop] {
		return &lifecycle.Feature[*Shop]{
			Name: "Search",
			Gate: func(_ context.Context, shop *Shop) gates.Gate { return gates.When(!shop.Spec.Off) },
			Prerequisites: []lifecycle.Prerequisite[*Shop]{
				lifecycle.DependsOn[*Shop]("DatabaseReady"),
			},
			GracePeriod: 5 * time.Minute,
			Reconciler:  reporting(state),
		}
	}
	shop, noon := &Shop{}, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	reconcile := func(node reconcilers.SubReconciler[*Shop], now time.Time) {
		ctx := rtime.StashNow(context.Background(), now)
		result, err := node.Reconcile(ctx, shop)
		c := reconcilers.GetCondition(shop, "SearchReady")
		fmt.Println(c.Status, c.Reason, result.RequeueAfter, err)
	}

	reconcile(search(apis.StateCreating), noon)
	reconcilers.SetCondition(context.Background(), shop, metav1.Condition{Type: "DatabaseReady", Status: metav1.ConditionTrue, Reason: "Ready"})
	reconcile(search(apis.StateCreating), noon.Add(time.Hour))
	reconcile(search(apis.StateCreating), noon.Add(time.Hour+5*time.Minute))
	reconcile(search(apis.StateHealthy), noon.Add(2*time.Hour))
	shop.Spec.Off = true
	reconcile(search(apis.StateHealthy), noon.Add(3*time.Hour))
	// Output:
	// False PrerequisiteNotMet 0s <nil>
	// False Creating 5m0s <nil>
	// False Down 0s <nil>
	// True Healthy 0s <nil>
	// True Disabled 0s <nil>
}

func ExampleFeatures() {
	features := &lifecycle.Features[*Shop]{
		Condition: "Ready",
		Features: []*lifecycle.Feature[*Shop]{
			{Name: "Search", Reconciler: reporting(apis.StateHealthy)},
			{Name: "Checkout", Reconciler: reporting(apis.StateFailing)},
			{Name: "Reports", Reconciler: reporting(apis.StateCreating)},
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
