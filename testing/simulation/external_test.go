package simulation_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier/testing/simulation"
)

func TestExternal(t *testing.T) {
	var starts, other simulation.External[atomic.Int64]
	options := simulation.Options{Operator: func(ctx context.Context, _ ctrl.Manager) error {
		starts.In(ctx).Add(1)
		return nil
	}}
	for range 2 { // each world has its own
		simulation.Run(t, options, func(w *simulation.World) {
			w.Pass(time.Second)
			w.Kill()
			w.Pass(2 * time.Second)
			if n := starts.Of(w).Load(); n != 2 {
				w.Errorf("%d starts", n)
			}
			if n := other.Of(w).Load(); n != 0 {
				w.Errorf("%d of something else", n)
			}
		})
	}
}
