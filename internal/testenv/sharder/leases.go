package sharder

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// addLeases adds the controller that writes the state of each Lease to its label, takes Leases and deletes them.
func (s *Sharder) addLeases(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("shardlease").
		For(&coordinationv1.Lease{},
			builder.WithPredicates(predicate.NewPredicateFuncs(isShards), s.stateChanged())).
		Watches(ringObject(), handler.EnqueueRequestsFromMapFunc(s.leasesOf), builder.WithPredicates(specChanged)).
		Complete(reconcile.Func(s.reconcileLease))
}

// stateChanged passes Leases that are new, or whose state changed by a write.
func (s *Sharder) stateChanged() predicate.Funcs {
	state := func(obj client.Object) State { return StateOf(obj.(*coordinationv1.Lease), s.now()) }
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return state(e.ObjectOld) != state(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// leasesOf returns the requests for the Leases of a ring.
func (s *Sharder) leasesOf(ctx context.Context, ring client.Object) []reconcile.Request {
	leases, err := s.leases(ctx, Ring{Name: ring.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the Leases of a ring")
	}
	var requests []reconcile.Request
	for i := range leases {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&leases[i])})
	}
	return requests
}

// reconcileLease carries out what is to be done about a Lease.
func (s *Sharder) reconcileLease(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	lease := &coordinationv1.Lease{}
	if err := s.seen.Get(ctx, request.NamespacedName, lease); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if ring, _, err := s.ring(ctx, lease.Labels[RingLabel]); ring == nil {
		return reconcile.Result{}, err
	}
	now := s.now()
	step := stepOf(lease, now)
	if lease.Labels[StateLabel] != string(step.state) {
		patch := client.MergeFromWithOptions(lease.DeepCopy(), client.MergeFromWithOptimisticLock{})
		lease.Labels[StateLabel] = string(step.state)
		if err := s.client.Patch(ctx, lease, patch); err != nil {
			return reconcile.Result{}, fmt.Errorf("write the state of Lease %s: %w", request, err)
		}
	}
	switch {
	case step.take:
		_, duration := expiry(lease, now)
		take(&lease.Spec, metav1.NewMicroTime(now), int32(duration.Seconds()))
		if err := s.client.Update(ctx, lease); err != nil {
			return reconcile.Result{}, fmt.Errorf("take Lease %s: %w", request, err)
		}
	case step.delete:
		// Without a precondition: a shard that takes the Lease meanwhile loses it.
		return reconcile.Result{}, s.client.Delete(ctx, lease)
	}
	return reconcile.Result{RequeueAfter: step.again}, nil
}

// take has the sharder hold a Lease of a duration in seconds, for twice as long.
func take(spec *coordinationv1.LeaseSpec, now metav1.MicroTime, seconds int32) {
	var transitions int32 = 1
	if spec.LeaseTransitions != nil {
		transitions += *spec.LeaseTransitions
	}
	spec.HolderIdentity, spec.LeaseDurationSeconds = new(Identity), new(2*seconds)
	spec.AcquireTime, spec.RenewTime, spec.LeaseTransitions = &now, &now, &transitions
}
