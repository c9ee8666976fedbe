package component

import (
	"context"
	"sync/atomic"

	"github.com/espalier-dev/espalier/internal/component/observe"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ForgetTask has the request of ctx look at everything, whatever the last one found.
func ForgetTask[T client.Object](ctx context.Context, node *ComponentReconciler[T], resource T) {
	node.states.Of(ctx, newResourceState).taskInput = taskInput{}
}

// CountObserves counts how often the component is observed from the request of ctx on.
func CountObserves[T client.Object](
	ctx context.Context, node *ComponentReconciler[T], resource T, observes *atomic.Int64,
) {
	target := node.states.Of(ctx, newResourceState).target
	if target == nil {
		return
	}
	if _, counts := target.observer.(*countingObserver); !counts {
		target.observer = &countingObserver{target.observer, observes}
	}
}

// CountTargets returns how many clusters the node keeps, with the identities to use there.
func CountTargets[T client.Object](node *ComponentReconciler[T]) int {
	node.targets.mu.Lock()
	defer node.targets.mu.Unlock()
	return len(node.targets.by)
}

type countingObserver struct {
	observe.Observer
	observes *atomic.Int64
}

func (o *countingObserver) Observe(
	ctx context.Context, c observe.Component, interests []observe.Interest,
) (*observe.Observation, error) {
	o.observes.Add(1)
	return o.Observer.Observe(ctx, c, interests)
}
