package espalier

import (
	"context"
	"errors"
	"time"

	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// auxiliaryRetry is when a node is tried again whose error is not returned.
const auxiliaryRetry = 10 * time.Second

// role says how the children of a node count.
type role struct {
	auxiliary bool
	unchecked bool
	// logged is the text of the error that was logged last for a resource.
	logged reconcilers.ResourceState[*string]
}

// reconcile runs a node in its role. Name is the name of the node.
func (r *role) reconcile(
	ctx context.Context, name string, resource client.Object, node func(context.Context) (reconcilers.Result, error),
) (reconcilers.Result, error) {
	if s := reconcilers.SupervisorOf(ctx); s != nil && (r.auxiliary || r.unchecked) {
		ctx = reconcilers.WithSupervisor(ctx, &roleSupervisor{Supervisor: s, role: r})
	}
	result, err := node(ctx)
	if !r.auxiliary || reconcilers.CleansUp(ctx, resource) {
		// A finalizer around the node must not go while the children are there.
		return result, err
	}
	last := r.logged.Of(ctx, resource, func() *string { return new(string) })
	if err == nil {
		*last = ""
		return result, nil
	}
	if text := err.Error(); text != *last && !errors.Is(err, reconcilers.ErrQuiet) {
		*last = text
		log := logr.FromContextOrDiscard(reconcilers.Enter(ctx, name))
		log.Info("an auxiliary child is not as desired", "reason", text)
	}
	if errors.Is(err, reconcilers.ErrDurable) {
		return result, nil
	}
	return reconcilers.AggregateResults(result, reconcilers.Result{RequeueAfter: auxiliaryRetry}), nil
}

// roleSupervisor adds the role of a node to what the node reports.
type roleSupervisor struct {
	reconcilers.Supervisor
	role *role
}

func (s *roleSupervisor) Observe(object reconcilers.ObservedObject) {
	object.Auxiliary = object.Auxiliary || s.role.auxiliary
	object.Unchecked = object.Unchecked || s.role.unchecked
	s.Supervisor.Observe(object)
}
