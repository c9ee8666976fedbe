package kept

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/reconcilers"
)

type item struct {
	pod  *corev1.Pod
	when context.Context
}

type registry struct {
	items   []item
	byName  map[string]*item
	current atomic.Pointer[corev1.Pod]
	latest  client.Object
	notify  func(context.Context, client.Object)
}

var registered = &registry{}

func (r *registry) Around(
	ctx context.Context, pod *corev1.Pod, node reconcilers.SubReconciler[*corev1.Pod],
) (reconcilers.Result, error) {
	r.items = append(r.items, item{pod: pod}) // want `given to Around keeps the resource`
	r.byName[pod.Name] = &item{when: ctx}     // want `given to Around keeps the context`
	r.current.Store(pod)                      // want `given to Around keeps the resource`
	r.set(pod)
	return node.Reconcile(ctx, pod)
}

func (r *registry) set(object client.Object) {
	if pod, ok := object.(*corev1.Pod); ok {
		r.latest = pod // want `given to Around keeps the resource`
	}
}

var _ = &reconcilers.Advice[*corev1.Pod]{Around: registered.Around}

var _ = espalier.When("When", func(ctx context.Context, pod *corev1.Pod) bool {
	registered.notify = func(context.Context, client.Object) { // want `given to When keeps the resource`
		println(pod.Name)
	}
	time.AfterFunc(time.Minute, func() { notify(ctx, pod) }) // want `the goroutine may outlive the request`
	return true
}, espalier.Runs("Inner", func(ctx context.Context, pod *corev1.Pod) error {
	last, registered.latest = nil, pod // want `given to Runs keeps the resource`
	return nil
}))
