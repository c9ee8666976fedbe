package feature_test

import (
	"context"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/feature"
	gates "github.com/espalier-dev/espalier/feature/gate"
	"github.com/espalier-dev/espalier/reconcilers"
	rtime "github.com/espalier-dev/espalier/time"
)

// A feature is rolled out, takes too long, and is switched off.
func ExampleFeature() {
	web := &feature.Feature[*Shop]{
		Name:        "Web",
		GracePeriod: 5 * time.Minute,
		Gate:        func(_ context.Context, s *Shop) gates.Gate { return gateOf(s) },
		// A real tree has espalier.Owns or a component here.
		Reconciler: scripted{},
	}
	shop := &Shop{}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	reconcile := func(after time.Duration) {
		result, err := web.Reconcile(rtime.StashNow(context.Background(), start.Add(after)), shop)
		condition := reconcilers.GetCondition(shop, "WebReady")
		fmt.Println(condition.Status, condition.Reason, condition.Message, result.RequeueAfter, err)
	}
	shop.Spec.Reports = []string{"Deployment web Creating Down 0 of 3 replicas available"}
	reconcile(0)
	reconcile(5 * time.Minute)
	shop.Spec.Reports = []string{"Deployment web Healthy"}
	reconcile(6 * time.Minute)
	shop.Spec.Off, shop.Spec.Reports = true, []string{"Deployment web absent"}
	reconcile(7 * time.Minute)
	fmt.Println(shop.Status.Features[0].Phase == apis.FeatureDisabled)
	// Output:
	// False Creating Deployment default/web: 0 of 3 replicas available 5m0s <nil>
	// False Down not healthy after 5m0s: Deployment default/web: 0 of 3 replicas available 0s <nil>
	// True Healthy  0s <nil>
	// True Disabled  0s <nil>
	// true
}
