package page_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/page"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// countingObserver does the least that an observer can do.
type countingObserver struct{ starts int }

func (o *countingObserver) Start(ctx context.Context, _ *reconcilers.Node) context.Context {
	o.starts++
	return ctx
}
func (o *countingObserver) End(context.Context, *reconcilers.Node, reconcilers.Outcome) {}
func (o *countingObserver) Note(context.Context, *reconcilers.Node, any)                {}

// BenchmarkSequenceOfTenSyncs shows what a page costs a request that does nothing: beside none, and beside an observer
// that does nothing.
func BenchmarkSequenceOfTenSyncs(b *testing.B) {
	for _, bench := range []struct {
		name     string
		observer reconcilers.Observer
	}{{"none", nil}, {"empty", &countingObserver{}}, {"page", page.New(page.Options{})}} {
		b.Run("observer="+bench.name, func(b *testing.B) {
			config := reconcilers.Config{Client: anyClient{newWorld(b, page.Options{}).client}}
			if bench.observer != nil {
				config = config.WithObserver(bench.observer)
			}
			var tree reconcilers.Sequence[*corev1.ConfigMap]
			for range 10 {
				tree = append(tree, &reconcilers.SyncReconciler[*corev1.ConfigMap]{
					Sync: func(context.Context, *corev1.ConfigMap) error { return nil },
				})
			}
			root := &reconcilers.ResourceReconciler[*corev1.ConfigMap]{Reconciler: tree, Config: config}
			ctx := logr.NewContext(context.Background(), logr.Discard())
			request := ctrl.Request{NamespacedName: keyOf("idle")}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := root.Reconcile(ctx, request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
