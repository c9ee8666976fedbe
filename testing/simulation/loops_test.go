package simulation

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// TestHotRequeue has an operator ask for the next request at once, without a write that anybody would see.
func TestHotRequeue(t *testing.T) {
	t.Parallel()
	options := Options{Operator: func(_ context.Context, mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
			func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{RequeueAfter: time.Millisecond}, nil
			}))
	}}
	fails(t, options, func(w *World) {
		w.Create(original("a", "x"))
		w.Rest()
	}, "operator does not come to rest: it asked for another request for ConfigMap default/a 1000 times within a minute, "+
		"the last time after 1ms")
}

// TestSlowRequeue has an operator ask for a request each second, which is its good right.
func TestSlowRequeue(t *testing.T) {
	t.Parallel()
	Run(t, Options{Operator: func(_ context.Context, mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
			func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{RequeueAfter: time.Second}, nil
			}))
	}}, func(w *World) {
		w.Create(original("a", "x"))
		w.Rest()
	})
}

// TestEventStorm has an operator record an event each second, about an object that it changes each time.
func TestEventStorm(t *testing.T) {
	t.Parallel()
	options := Options{Operator: func(_ context.Context, mgr ctrl.Manager) error {
		events := mgr.GetEventRecorder("x")
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
			func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				seen := &corev1.ConfigMap{}
				if err := mgr.GetClient().Get(ctx, r.NamespacedName, seen); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				time.Sleep(time.Second)
				seen.Data["at"] = time.Now().Format(time.RFC3339)
				if err := mgr.GetClient().Update(ctx, seen); err != nil {
					return reconcile.Result{}, err
				}
				events.Eventf(seen, nil, "Normal", "Polled", "Poll", "polled")
				return reconcile.Result{}, nil
			}))
	}}
	fails(t, options, func(w *World) {
		w.Create(original("a", "x"))
		w.Rest()
	}, "operator recorded 1000 events about ConfigMap default/a within an hour, the last one: Normal Polled: polled")
}
