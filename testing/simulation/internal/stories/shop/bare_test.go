package shop_test

import (
	"context"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier/examples/shop/bare"
	"github.com/espalier-dev/espalier/testing/simulation"
)

// TestBare tells the story of the operator that is written with controller-runtime alone, which has an index.
func TestBare(t *testing.T) {
	options, e := cluster(t), newEnds()
	options.Operator = func(ctx context.Context, mgr ctrl.Manager) error {
		return (&bare.Reconciler{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("shop"), Registry: called{registries.In(ctx)},
			RetryInterval: time.Minute,
		}).SetupWithManager(ctx, mgr)
	}
	simulation.RunSeeds(t, options, func(w *simulation.World) { life(w, e) })
}
