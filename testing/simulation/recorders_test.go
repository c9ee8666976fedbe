package simulation

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// polls records the same event every few minutes, so that client-go makes a series of it.
func polls(_ context.Context, mgr ctrl.Manager) error {
	events := mgr.GetEventRecorder("x")
	//lint:ignore SA1019 many operators use it
	core := mgr.GetEventRecorderFor("y")
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
		func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			app := &corev1.ConfigMap{}
			if err := mgr.GetClient().Get(ctx, r.NamespacedName, app); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			events.Eventf(app, nil, corev1.EventTypeNormal, "Polled", "Poll", "polled")
			// Both recorders name an event by the nanosecond, so the server refuses one of two at the same time.
			time.Sleep(time.Millisecond)
			core.Event(app, corev1.EventTypeNormal, "Seen", "seen")
			return reconcile.Result{RequeueAfter: 3 * time.Minute}, nil
		}))
}

// series returns how often the event of an app was recorded, as far as its series says.
func series(w *World) (recorded int32) {
	all := &eventsv1.EventList{}
	w.List(all, client.InNamespace("default"))
	for _, e := range all.Items {
		if e.Reason == "Polled" && e.Series != nil {
			recorded = max(recorded, e.Series.Count)
		}
	}
	return recorded
}

// TestEventSeries has client-go write an event again while it holds a mutex for which the operator waits.
func TestEventSeries(t *testing.T) {
	t.Parallel()
	attempt(t, Options{Operator: polls}, func(w *World) {
		w.Create(newApp("one"))
		w.Pass(2 * time.Hour)
		if n := series(w); n < 20 {
			w.Errorf("the event was recorded %d times", n)
		}
	}).must(t)
}

// TestEventSeriesUnderFaults has requests for events meet all that would make other requests wait.
func TestEventSeriesUnderFaults(t *testing.T) {
	t.Parallel()
	plan := Plan{Seed: 1, Latency: 2 * time.Second}
	for _, kind := range []FaultKind{Refuses, Fails, LosesAnswer, Conflicts, Throttles, DiesAfter, Restarts} {
		plan.Chances = append(plan.Chances, Chance{Kind: kind, OneIn: 20, Delay: time.Minute})
	}
	all := Plan{Faults: []Fault{
		{Kind: Throttles, Actor: Operator, Verb: "create", Times: 1000},
		{Kind: Throttles, Actor: Operator, Verb: "patch", Times: 1000},
	}}
	user := Plan{Faults: []Fault{{Kind: UserDeletes, Actor: Operator, Times: 1000}}}
	for name, p := range map[string]Plan{"chances": plan, "throttled": all, "the user deletes": user} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attempt(t, Options{Operator: polls, Plan: p}, func(w *World) {
				app := newApp("one")
				w.Create(app)
				w.Pass(40 * time.Minute)
				w.Freeze()
				w.Pass(40 * time.Minute)
				w.Resume()
				w.Partition()
				w.Pass(40 * time.Minute)
				w.Resume()
				w.RestartServer(40 * time.Minute)
				w.Pass(2 * time.Hour)
			}).must(t)
		})
	}
}
