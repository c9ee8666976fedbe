package reconcilers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// benchmarkNode runs a node over and over, over a resource with some content.
func benchmarkNode(b *testing.B, node widgetNode) {
	resource := widget.With(statusField("key", "value"), func(w *resources.Widget) {
		w.Labels = map[string]string{"app": "bench"}
		w.Finalizers = []string{ours}
		w.Spec.Fields = map[string]string{"image": "example.com/app:1", "replicas": "3"}
	}).Object()
	ctx := testContext(b, expectWidget().Config())
	b.ReportAllocs()
	for b.Loop() {
		_, _ = node.Reconcile(ctx, resource)
	}
}

func BenchmarkCastResource(b *testing.B) {
	b.Run("nothing changes", func(b *testing.B) {
		benchmarkNode(b, syncView(func(context.Context, *statusView) (reconcilers.Result, error) { return minute, nil }))
	})
	b.Run("to a large type", func(b *testing.B) {
		benchmarkNode(b, syncDeployment(func(context.Context, *appsv1.Deployment) error { return nil }))
	})
	b.Run("the status changes", func(b *testing.B) {
		i := 0
		benchmarkNode(b, syncView(func(_ context.Context, v *statusView) (reconcilers.Result, error) {
			i++
			v.setField("key", []string{"odd", "even"}[i%2])
			return minute, nil
		}))
	})
	b.Run("the same type", func(b *testing.B) {
		benchmarkNode(b, &reconcilers.CastResource[*resources.Widget, client.Object]{
			Reconciler: &reconcilers.SyncReconciler[client.Object]{Sync: func(context.Context, client.Object) error { return nil }},
		})
	})
}

func BenchmarkSuppressTransientErrors(b *testing.B) {
	b.Run("no error", func(b *testing.B) { benchmarkNode(b, &widgetSuppress{Reconciler: fails(nil)}) })
	b.Run("errors", func(b *testing.B) { benchmarkNode(b, &widgetSuppress{Reconciler: fails(errBoom)}) })
	b.Run("many resources at once", func(b *testing.B) {
		node := &widgetSuppress{Reconciler: &widgetSync{Sync: func(context.Context, *resources.Widget) error { return errBoom }}}
		ctx := testContext(b, expectWidget().Config())
		var started atomic.Int32
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			uid := types.UID(fmt.Sprint("uid-", started.Add(1)))
			resource := widget.With(func(w *resources.Widget) { w.UID = uid }).Object()
			for pb.Next() {
				_, _ = node.Reconcile(ctx, resource)
			}
		})
	})
}
