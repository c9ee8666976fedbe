package simulation_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier/testing/simulation"
)

// TestExternalOfReconciler asks for a thing with a context that is not that of the set-up.
func TestExternalOfReconciler(t *testing.T) {
	var starts simulation.External[atomic.Int64]
	simulation.Run(t, simulation.Options{Operator: func(context.Context, ctrl.Manager) error {
		go starts.In(context.Background()).Add(1)
		return nil
	}}, func(w *simulation.World) {
		w.Pass(time.Second)
		if n := starts.Of(w).Load(); n != 1 {
			w.Errorf("%d starts", n)
		}
	})
	defer func() {
		if text, want := fmt.Sprint(recover()), "External.In is called outside of a simulation"; !strings.Contains(text, want) {
			t.Errorf("the panic says %q, want it to say %q", text, want)
		}
	}()
	starts.In(t.Context())
}

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
