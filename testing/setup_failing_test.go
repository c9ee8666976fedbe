package testing_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

type requestQueue = workqueue.TypedRateLimitingInterface[reconcilers.Request]

// setsUp is a case that must fail.
func setsUp(tc setupCase) func(t *testing.T) {
	return func(t *testing.T) {
		if tc.ExpectWatches == nil {
			tc.ExpectWatches = []client.Object{&resources.Widget{}}
		}
		if tc.Metadata == nil {
			tc.Metadata = sets()
		}
		rtesting.SetupTests{"case": tc}.Run(t, widgets, newSetup)
	}
}

// watches is the metadata of a case whose root does f besides.
func watches(f func(ctx context.Context, bldr *reconcilers.Builder)) map[string]any {
	return sets(hook(func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
		f(ctx, bldr)
		return nil
	}))
}

// lingering is a controller that enqueues a request when it ends.
type lingering struct {
	controller.Controller
	NewQueue func(string, workqueue.TypedRateLimiter[reconcilers.Request]) requestQueue
}

func (l *lingering) Start(ctx context.Context) error {
	q := l.NewQueue("", nil)
	context.AfterFunc(ctx, q.ShutDown)
	q.Get()
	q.Add(gadget)
	return nil
}

// closed is a controller whose queue cannot be seen.
type closed struct{ controller.Controller }

// wrapped is the metadata of a case with a controller that wrap makes of another.
func wrapped(wrap func(controller.Controller) controller.Controller) map[string]any {
	return map[string]any{"setup": rtesting.SetupFunc(func(_ context.Context, mgr reconcilers.Manager) error {
		c, err := controller.NewUnmanaged("wrapped", controller.Options{
			SkipNameValidation: new(true),
			Reconciler: reconcile.Func(func(context.Context, reconcilers.Request) (reconcilers.Result, error) {
				return reconcilers.Result{}, nil
			}),
		})
		if err != nil {
			return err
		}
		return mgr.Add(wrap(c))
	})}
}

func init() {
	for name, failing := range map[string]scenario{
		"watch": {
			run: setsUp(setupCase{Metadata: sets(child("a"))}),
			want: []string{
				"ExpectWatches differs (-expected, +actual):\n", `"v1 ConfigMap"`,
				"To expect it, set it to:\n", "[]client.Object{&resources.Widget{}, &corev1.ConfigMap{}},",
			},
			unwanted: []string{"ExpectIndexes", "ExpectRequests"},
		},
		"watched twice": {
			run: setsUp(setupCase{
				ExpectWatches: []client.Object{&resources.Widget{}, &corev1.Pod{}},
				Metadata: watches(func(_ context.Context, bldr *reconcilers.Builder) {
					bldr.Watches(&corev1.Pod{}, enqueue()).Watches(&corev1.Pod{}, enqueue())
				}),
			}),
			want: []string{"ExpectWatches differs", "&corev1.Pod{}, &corev1.Pod{}"},
		},
		"watch missing": {
			run: setsUp(setupCase{ExpectWatches: []client.Object{&resources.Widget{}, dynamicPod, nil, &unregistered{}}}),
			want: []string{
				"ExpectWatches differs", `"v1 Pod (unstructured)"`, `"nil"`,
				"the kind of *testing_test.unregistered is neither in the scheme",
			},
		},
		"index": {
			run: setsUp(setupCase{
				Metadata:      sets(child("a")),
				ExpectWatches: []client.Object{&resources.Widget{}, &corev1.ConfigMap{}},
				ExpectIndexes: []rtesting.IndexRef{{Object: &corev1.ConfigMap{}, Field: ".espalier.dev/controller-uid"}},
			}),
			want: []string{"ExpectIndexes differs", "To expect it, set it to:\n", "nil,"},
		},
		"request of an event": {
			run: setsUp(setupCase{Events: []rtesting.SetupEvent{
				{Created: widget},
				{Name: "resync", Updated: widget, ExpectRequests: []reconcilers.Request{requestFor("", "acme")}},
				{Before: widget},
			}}),
			want: []string{
				"Events[0] (created Widget default/gadget): ExpectRequests differs (-expected, +actual):\n",
				"[]reconcilers.Request{{NamespacedName: types.NamespacedName{Namespace: \"default\", Name: \"gadget\"}}},",
				"Events[1] (resync): ExpectRequests differs", `"acme"`,
				"Events[2] (nothing) has nothing that happens",
			},
			unwanted: []string{"Events[2] (nothing): "},
		},
		"request of the start": {
			alone: true,
			run:   setsUp(setupCase{ExpectRequests: []reconcilers.Request{gadget}}),
			want:  []string{"case", "ExpectRequests differs", `"default/gadget"`},
		},
		"request that is not sent": {
			alone: true,
			run: setsUp(setupCase{Events: []rtesting.SetupEvent{{
				Send: func(context.Context) {}, ExpectRequests: []reconcilers.Request{gadget},
			}}}),
			want: []string{"Events[0] (sent): ExpectRequests differs"},
		},
		"late request": {
			run: setsUp(setupCase{
				ExpectWatches: []client.Object{},
				Metadata:      wrapped(func(c controller.Controller) controller.Controller { return &lingering{Controller: c} }),
			}),
			want: []string{`Unexpected requests observed at the end: ["default/gadget"]`},
		},
		"controller without a queue": {
			run: setsUp(setupCase{
				ExpectWatches: []client.Object{},
				Metadata:      wrapped(func(c controller.Controller) controller.Controller { return closed{c} }),
			}),
			want: []string{"the controllers cannot be started: the queue of a testing_test.closed cannot be observed"},
		},
		"source that fails": {
			run: setsUp(setupCase{Metadata: watches(func(_ context.Context, bldr *reconcilers.Builder) {
				bldr.WatchesRawSource(source.Func(func(context.Context, requestQueue) error { return errOops }))
			})}),
			want: []string{"the controllers cannot be started: oops"},
		},
		"source that blocks": {
			alone: true,
			run: setsUp(setupCase{Metadata: watches(func(_ context.Context, bldr *reconcilers.Builder) {
				bldr.WatchesRawSource(source.Func(func(ctx context.Context, _ requestQueue) error { <-ctx.Done(); return nil }))
			})}),
			want: []string{"the controllers cannot be started: a source takes too long to start: context deadline exceeded"},
		},
		"type that is not known": {
			run: setsUp(setupCase{
				Metadata: watches(func(_ context.Context, bldr *reconcilers.Builder) { bldr.Watches(&unregistered{}, enqueue()) }),
				Events:   []rtesting.SetupEvent{{Deleted: &unregistered{}}},
			}),
			want: []string{
				"*testing_test.unregistered cannot be watched: ",
				"Events[0] (deleted *testing_test.unregistered ) cannot happen: ",
			},
		},
		"nothing to set up": {
			run:  setsUp(setupCase{Metadata: fails(errOops)}),
			want: []string{"Setup factory returned nothing to set up"},
		},
		"error of set-up": {
			run:  setsUp(setupCase{ShouldErr: true}),
			want: []string{"SetupWithManager() error = <nil>, ShouldErr true"},
		},
		"other error of set-up": {
			run:  setsUp(setupCase{Metadata: failingSetup(), ExpectedErr: reconcilers.ErrQuiet}),
			want: []string{"SetupWithManager() error = oops, ExpectedErr "},
		},
		"no error of set-up": {
			run:      setsUp(setupCase{Metadata: failingSetup()}),
			want:     []string{"SetupWithManager() error = oops, ShouldErr false"},
			unwanted: []string{"ExpectWatches"},
		},
		"verified set-up": {
			run:  setsUp(setupCase{Verify: func(t *testing.T, err error) { t.Errorf("verified %v", err) }}),
			want: []string{"verified <nil>"},
		},
		"prepare of set-up": {
			run: setsUp(setupCase{Prepare: func(*testing.T, context.Context, *setupCase) (context.Context, error) {
				return nil, errOops
			}}),
			want: []string{"error during prepare: oops"},
		},
		"clean up of set-up": {
			run:  setsUp(setupCase{CleanUp: func(*testing.T, context.Context, *setupCase) error { return errOops }}),
			want: []string{"error during clean up: oops"},
		},
		"write during set-up": {
			run:  setsUp(setupCase{Metadata: writingSetup()}),
			want: []string{"Unexpected Create observed: "},
		},
		"focus of set-up": {
			run: func(t *testing.T) {
				rtesting.SetupTestSuite{
					{Name: "first", Focus: true, Metadata: sets(), ExpectWatches: []client.Object{&resources.Widget{}}}, {Name: "second"},
				}.Run(t, widgets, newSetup)
			},
			want:     []string{"PASS: " + "%s/first", "1 tests out of 2 are still focused"},
			unwanted: []string{"/second"},
		},
	} {
		run := failing.run
		failing.run = func(t *testing.T) {
			rtesting.SetSetupTimeout(5 * time.Second)
			run(t)
		}
		scenarios[name] = failing
	}
}

// unregistered is a type that no scheme has.
type unregistered struct{ corev1.ConfigMap }

func (u *unregistered) DeepCopyObject() runtime.Object { return &unregistered{*u.DeepCopy()} }

func failingSetup() map[string]any {
	return sets(hook(func(context.Context, reconcilers.Manager, *reconcilers.Builder) error { return errOops }))
}

func writingSetup() map[string]any {
	return sets(hook(func(ctx context.Context, mgr reconcilers.Manager, _ *reconcilers.Builder) error {
		return mgr.GetClient().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})
	}))
}

// What a set-up case starts is done when it ends, but for goroutines of raw sources, which end by themselves.
func TestSetupCasesLeaveNothingBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	events := make(chan ctrlevent.GenericEvent)
	rtesting.SetupTests{
		"starts": {
			ExpectWatches: []client.Object{&corev1.ConfigMap{}, &corev1.Pod{}},
			Metadata: map[string]any{"setup": rtesting.SetupFunc(func(_ context.Context, mgr reconcilers.Manager) error {
				return ctrl.NewControllerManagedBy(mgr).
					For(&corev1.ConfigMap{}).
					Watches(&corev1.Pod{}, enqueue(gadget)).
					WatchesRawSource(source.Channel(events, &handler.EnqueueRequestForObject{})).
					WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
					Complete(reconcile.Func(func(context.Context, reconcilers.Request) (reconcilers.Result, error) {
						return reconcilers.Result{}, nil
					}))
			})},
			Events: []rtesting.SetupEvent{{Created: pod, ExpectRequests: []reconcilers.Request{gadget}}},
		},
		"fails": {Metadata: failingSetup(), ShouldErr: true},
	}.Run(t, widgets, newSetup)
	goleak.VerifyNone(t, before)
}
