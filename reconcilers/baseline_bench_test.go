package reconcilers_test

import (
	"context"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// BenchmarkBaselineEmptyReconcile is what controller-runtime takes for a request that does nothing, from the queue to the
// queue: the measure for what a tree adds.
func BenchmarkBaselineEmptyReconcile(b *testing.B) {
	done := make(chan struct{})
	remaining := 0
	c, err := controller.NewTypedUnmanaged("baseline", controller.Options{
		SkipNameValidation: new(true),
		Reconciler: reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			if remaining--; remaining == 0 {
				done <- struct{}{}
			}
			return ctrl.Result{}, nil
		}),
	})
	if err != nil {
		b.Fatal(err)
	}
	queues := make(chan workqueue.TypedRateLimitingInterface[ctrl.Request], 1)
	err = c.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		queues <- queue
		return nil
	}))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- c.Start(ctx) }()
	queue := <-queues

	b.ReportAllocs()
	remaining = b.N
	b.ResetTimer()
	for i := range b.N {
		queue.Add(ctrl.Request{NamespacedName: types.NamespacedName{Name: strconv.Itoa(i)}})
	}
	<-done
	b.StopTimer()
	cancel()
	if err := <-stopped; err != nil {
		b.Fatal(err)
	}
}
