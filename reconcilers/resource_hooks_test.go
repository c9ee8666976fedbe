package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestResourceReconcilerHooks(t *testing.T) {
	type rtest = rtesting.ReconcilerTestCase
	type key struct{}
	before := func(do func(context.Context) (context.Context, reconcilers.Result, error), tree reconcilers.Result) func(*trace) *widgetRoot {
		return func(calls *trace) *widgetRoot {
			return &widgetRoot{
				BeforeReconcile: func(ctx context.Context, req reconcilers.Request) (context.Context, reconcilers.Result, error) {
					calls.add("before %s", req)
					return do(ctx)
				},
				Reconciler: &widgetSync{SyncWithResult: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
					calls.add("tree %v", ctx.Value(key{}))
					return tree, nil
				}},
				AfterReconcile: func(ctx context.Context, req reconcilers.Request, result reconcilers.Result, err error) (reconcilers.Result, error) {
					calls.add("after %s: %v, %v, %v", req, ctx.Value(key{}), result.RequeueAfter, err)
					return result, err
				},
			}
		}
	}
	after := func(tree error, result reconcilers.Result, err error) func(*trace) *widgetRoot {
		return func(calls *trace) *widgetRoot {
			return &widgetRoot{
				Reconciler: calls.step("tree", minute, tree),
				AfterReconcile: func(_ context.Context, _ reconcilers.Request, _ reconcilers.Result, tree error) (reconcilers.Result, error) {
					calls.add("after %v", errors.Is(tree, errBoom))
					return result, err
				},
			}
		}
	}
	steady := []client.Object{steadyWidget}
	second := reconcilers.Result{RequeueAfter: time.Second}
	rootTests{
		"the context and the result of before are used": {
			root: before(func(ctx context.Context) (context.Context, reconcilers.Result, error) {
				return context.WithValue(ctx, key{}, "value"), second, nil
			}, minute),
			calls:              []string{"before default/gadget", "tree value", "after default/gadget: value, 1s, <nil>"},
			ReconcilerTestCase: rtest{GivenObjects: steady, ExpectedResult: second},
		},
		"no context": {
			root: before(func(context.Context) (context.Context, reconcilers.Result, error) {
				return nil, minute, nil
			}, second),
			calls:              []string{"before default/gadget", "tree <nil>", "after default/gadget: <nil>, 1s, <nil>"},
			ReconcilerTestCase: rtest{GivenObjects: steady, ExpectedResult: second},
		},
		// The write brings back what the tree asked for, but not what the hook asked for.
		"the result of before outlives a status write": {
			root: before(func(context.Context) (context.Context, reconcilers.Result, error) {
				return nil, minute, nil
			}, second),
			calls: []string{"before default/gadget", "tree <nil>", "update Widget/status", "after default/gadget: <nil>, 1m0s, <nil>"},
			ReconcilerTestCase: rtest{
				GivenObjects:        []client.Object{widget},
				ExpectStatusUpdates: []client.Object{steadyWidget},
				ExpectEvents:        []rtesting.Event{statusUpdated},
				ExpectedResult:      minute,
			},
		},
		"before fails": {
			root: before(func(context.Context) (context.Context, reconcilers.Result, error) {
				return nil, minute, errBoom
			}, second),
			calls:              []string{"before default/gadget"},
			ReconcilerTestCase: rtest{GivenObjects: []client.Object{widget}, ShouldErr: true, Verify: returnsBoth(errBoom, reconcilers.Result{})},
		},
		"before fails quietly": {
			root: before(func(context.Context) (context.Context, reconcilers.Result, error) {
				return nil, reconcilers.Result{}, fmt.Errorf("not yet: %w", reconcilers.ErrQuiet)
			}, second),
			calls:              []string{"before default/gadget"},
			ReconcilerTestCase: rtest{GivenObjects: []client.Object{widget}, ExpectedResult: requeue},
		},
		"before makes the resource": {
			root: before(func(ctx context.Context) (context.Context, reconcilers.Result, error) {
				made := &resources.Widget{}
				made.Namespace, made.Name = widgetKey.Namespace, widgetKey.Name
				err := reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, made)
				return nil, reconcilers.Result{}, client.IgnoreAlreadyExists(err)
			}, second),
			calls: []string{
				"before default/gadget", "create Widget", "tree <nil>", "update Widget/status",
				"after default/gadget: <nil>, 0s, <nil>",
			},
			ReconcilerTestCase: rtest{
				ExpectCreates: []client.Object{widget.With(func(w *resources.Widget) {
					w.UID, w.Generation = "", 0
				})},
				ExpectStatusUpdates: []client.Object{widget.With(func(w *resources.Widget) {
					w.UID, w.Generation = "", 0
				}, initialized)},
				ExpectEvents: []rtesting.Event{statusUpdated},
			},
		},
		"after replaces an error": {
			root:               after(errBoom, second, nil),
			calls:              []string{"tree", "after true"},
			ReconcilerTestCase: rtest{GivenObjects: steady, ExpectedResult: second},
		},
		"after makes an error": {
			root:               after(nil, second, errBoom),
			calls:              []string{"tree", "after false"},
			ReconcilerTestCase: rtest{GivenObjects: steady, ShouldErr: true, Verify: returnsBoth(errBoom, reconcilers.Result{})},
		},
		"after is quiet": {
			root:               after(nil, reconcilers.Result{}, reconcilers.ErrQuiet),
			calls:              []string{"tree", "after false"},
			ReconcilerTestCase: rtest{GivenObjects: steady, ExpectedResult: requeue},
		},
		"after, of a resource that is gone": {
			root:  after(nil, second, nil),
			calls: []string{"after false"},
			ReconcilerTestCase: rtest{
				ExpectedResult: second,
			},
		},
	}.run(t)
}

// Spec 17.1: the order of all calls for a living resource whose child must be created.
func TestResourceReconcilerCallOrder(t *testing.T) {
	calls := &trace{reads: true}
	c := expectWidget(widget)
	c.WithReactors = []rtesting.ReactionFunc{calls.observe}
	child := reflectingChild(calls)
	child.ChildObjectManager = &configMaps{
		Finalizer:         ours,
		TrackDesired:      true,
		MergeBeforeUpdate: mergeConfigMap,
	}
	child.OurChild = func(_ *resources.Widget, child *corev1.ConfigMap) bool {
		calls.add("our child? %s", child.Name)
		return true
	}
	root := &widgetRoot{
		SkipRequest:  func(context.Context, reconcilers.Request) bool { calls.add("skip request?"); return false },
		SkipResource: func(context.Context, *resources.Widget) bool { calls.add("skip resource?"); return false },
		BeforeReconcile: func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
			calls.add("before")
			return nil, reconcilers.Result{}, nil
		},
		AfterReconcile: func(_ context.Context, _ reconcilers.Request, result reconcilers.Result, err error) (reconcilers.Result, error) {
			calls.add("after %v %v", result.RequeueAfter, err)
			return result, err
		},
		Reconciler: widgetSequence{
			&widgetSync{SyncWithResult: func(_ context.Context, w *resources.Widget) (reconcilers.Result, error) {
				calls.add("sync with %d conditions", len(w.Status.Conditions))
				return minute, nil
			}},
			child,
		},
		Config: c.Config(),
	}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
		t.Fatal(err)
	}
	calls.compare(t, []string{
		"skip request?",
		"before",
		"get Widget",
		"skip resource?",
		"sync with 2 conditions",
		"list ConfigMapList",
		"desired child",
		"our child? gadget",
		"patch Widget",
		"create ConfigMap",
		"reflect gadget, <nil>",
		"update Widget/status",
		"after 0s <nil>",
	})
}

func TestResourceReconcilerContext(t *testing.T) {
	c := expectWidget(widget)
	config := c.Config()
	var first context.Context
	check := func(ctx context.Context, where string) {
		if reconcilers.RetrieveRequest(ctx) != widgetRequest {
			t.Errorf("%s: the request is %v, want %v", where, reconcilers.RetrieveRequest(ctx), widgetRequest)
		}
		if current := reconcilers.RetrieveConfigOrDie(ctx); current.Client != config.Client || current.Recorder != config.Recorder {
			t.Errorf("%s: the config is another, want that of the root", where)
		}
		if reconcilers.RetrieveOriginalConfigOrDie(ctx) != reconcilers.RetrieveConfigOrDie(ctx) {
			t.Errorf("%s: the original config is another, want the one there is", where)
		}
		if _, ok := reconcilers.RetrieveResourceType(ctx).(*resources.Widget); !ok {
			t.Errorf("%s: the resource type is %T, want *resources.Widget", where,
				reconcilers.RetrieveResourceType(ctx))
		}
		if _, ok := reconcilers.RetrieveOriginalResourceType(ctx).(*resources.Widget); !ok {
			t.Errorf("%s: the original resource type is %T, want *resources.Widget", where,
				reconcilers.RetrieveOriginalResourceType(ctx))
		}
		if reconcilers.HasValue(ctx, "key") {
			t.Errorf("%s: there is the stash of before, want a new one", where)
		}
	}
	root := &widgetRoot{
		BeforeReconcile: func(ctx context.Context, _ reconcilers.Request) (context.Context, reconcilers.Result, error) {
			check(ctx, "before")
			first = ctx
			return nil, reconcilers.Result{}, nil
		},
		Reconciler: &widgetSync{Sync: func(ctx context.Context, _ *resources.Widget) error {
			check(ctx, "tree")
			if !rtime.RetrieveNow(ctx).Equal(rtime.RetrieveNow(first)) {
				t.Errorf("the time of the request is %v, want %v", rtime.RetrieveNow(ctx), rtime.RetrieveNow(first))
			}
			reconcilers.StashValue(ctx, "key", "value")
			return nil
		}},
		Config: config,
	}
	outer := reconcilers.WithStash(t.Context())
	reconcilers.StashValue(outer, "key", "outer")
	for range 2 {
		if _, err := root.Reconcile(outer, widgetRequest); err != nil {
			t.Fatal(err)
		}
	}
	if reconcilers.RetrieveValue(outer, "key") != "outer" {
		t.Errorf("the stash outside of the request has %v, want outer", reconcilers.RetrieveValue(outer, "key"))
	}
}
