// Package clients has nodes that write by a client that they have captured, and such that do not.
package clients

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/reconcilers"
)

type syncing = reconcilers.SyncReconciler[*corev1.Pod]

var global client.Client

// In a global variable, direct.
var _ = &syncing{Sync: func(ctx context.Context, pod *corev1.Pod) error {
	return global.Create(ctx, pod) // want `given to Sync writes by a client that it has captured`
}}

// In a field, by a method value, through a helper.
type node struct {
	client.Client
	config reconcilers.Config
	target struct{ writer client.Writer }
}

func (n *node) run(ctx context.Context, pod *corev1.Pod) error {
	if err := n.Status().Update(ctx, pod); err != nil { // want `given to Runs writes`
		return err
	}
	if err := n.config.Delete(ctx, pod); err != nil { // want `given to Runs writes`
		return err
	}
	return n.remove(ctx, pod)
}

func (n *node) remove(ctx context.Context, pod *corev1.Pod) error {
	return n.target.writer.DeleteAllOf(ctx, pod) // want `given to Runs writes`
}

var _ = espalier.Runs("Method", (&node{}).run)

// In a variable around a closure.
func tree(c client.Client) *espalier.Run[*corev1.Pod] {
	return espalier.Runs("Closure", func(ctx context.Context, pod *corev1.Pod) error {
		return c.Patch(ctx, pod, client.MergeFrom(pod.DeepCopy())) // want `given to Runs writes`
	})
}

// In a node of one's own, and in a generic function that gets the client.
type own[T client.Object] struct{ writer client.Client }

func (o *own[T]) Reconcile(ctx context.Context, resource T) (reconcilers.Result, error) {
	return reconcilers.Result{}, update(ctx, o.writer, resource) // want `given to Reconcile writes`
}

func update[T client.Object](ctx context.Context, c client.Client, resource T) error {
	return c.Update(ctx, resource)
}

// What follows is right.

var _ = espalier.Runs("Right", func(ctx context.Context, pod *corev1.Pod) error {
	config := reconcilers.RetrieveConfigOrDie(ctx)
	if err := config.Create(ctx, pod); err != nil {
		return err
	}
	if err := global.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}
	return removed(ctx, config.Client, pod)
})

func removed(ctx context.Context, c client.Client, pod *corev1.Pod) error { return c.Delete(ctx, pod) }

func notANode(ctx context.Context, c client.Client) error { return c.Create(ctx, &corev1.Pod{}) }
