package simulation

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestHotLoop has an operator write the time at each reconcile, which causes the next one.
func TestHotLoop(t *testing.T) {
	options := small(t)
	options.Operator = func(_ context.Context, mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(note("")).Complete(reconcile.Func(
			func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				seen := note(r.Name)
				if err := mgr.GetClient().Get(ctx, r.NamespacedName, seen); err != nil {
					return reconcile.Result{}, err
				}
				now := time.Now().Format(time.RFC3339Nano)
				_ = unstructured.SetNestedField(seen.Object, now, "spec", "text")
				return reconcile.Result{}, mgr.GetClient().Update(ctx, seen)
			}))
	}
	o := attempt(t, options, func(w *World) {
		w.Create(note("a"))
		w.Rest()
	})
	if want := "update Note default/a was done 100 times within a minute"; !strings.Contains(o.said, want) {
		t.Errorf("the story says %q, not %q", o.said, want)
	}
}
