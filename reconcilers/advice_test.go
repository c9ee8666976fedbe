package reconcilers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Shorthands for the types of the functions of an Advice.
type (
	beforeFunc = func(context.Context, *resources.Widget) (context.Context, reconcilers.Result, error)
	aroundFunc = func(context.Context, *resources.Widget, widgetNode) (reconcilers.Result, error)
	afterFunc  = func(context.Context, *resources.Widget, reconcilers.Result, error) (reconcilers.Result, error)
)

func TestAdvice(t *testing.T) {
	type adviceKey struct{}
	bang := errors.New("bang")
	hour := reconcilers.Result{RequeueAfter: time.Hour}
	before := func(calls *trace, result reconcilers.Result, err error) beforeFunc {
		return func(ctx context.Context, _ *resources.Widget) (context.Context, reconcilers.Result, error) {
			calls.add("before")
			return context.WithValue(ctx, adviceKey{}, "from before"), result, err
		}
	}
	around := func(calls *trace, times int) aroundFunc {
		return func(ctx context.Context, w *resources.Widget, node widgetNode) (reconcilers.Result, error) {
			calls.add("around %v", ctx.Value(adviceKey{}))
			var result reconcilers.Result
			for range times {
				var err error
				if result, err = node.Reconcile(ctx, w); err != nil {
					return result, err
				}
			}
			return result, nil
		}
	}
	after := func(calls *trace, result reconcilers.Result, err error) afterFunc {
		return func(ctx context.Context, _ *resources.Widget, given reconcilers.Result, givenErr error) (reconcilers.Result, error) {
			calls.add("after %v: %s, %v", ctx.Value(adviceKey{}), given.RequeueAfter, givenErr)
			return result, err
		}
	}
	nodeTests{
		"nothing but a node": {
			node:       func(calls *trace) widgetNode { return &widgetAdvice{Reconciler: calls.step("node", minute, nil)} },
			calls:      []string{"node"},
			widgetCase: widgetCase{ExpectedResult: minute},
		},
		"nothing but a node, terminating": {
			node:       func(calls *trace) widgetNode { return &widgetAdvice{Reconciler: calls.step("node", minute, nil)} },
			calls:      []string{"node"},
			widgetCase: widgetCase{Resource: terminatingWidget.Object(), ExpectedResult: minute},
		},
		"nothing but a node that fails": {
			node:       func(calls *trace) widgetNode { return &widgetAdvice{Reconciler: calls.step("node", minute, errBoom)} },
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
		"in order, with the context of before": {
			node: func(calls *trace) widgetNode {
				return &widgetAdvice{
					Before:     before(calls, minute, nil),
					Around:     around(calls, 1),
					After:      after(calls, hour, nil),
					Reconciler: calls.step("node", hour, nil),
				}
			},
			calls:      []string{"before", "around from before", "node", "after from before: 1m0s, <nil>"},
			widgetCase: widgetCase{ExpectedResult: hour},
		},
		"the results of before and the node are aggregated": {
			node: func(calls *trace) widgetNode {
				return &widgetAdvice{Before: before(calls, requeue, nil), Reconciler: calls.step("node", minute, nil)}
			},
			widgetCase: widgetCase{Verify: returnsBoth(nil, reconcilers.AggregateResults(requeue, minute)), ExpectedResult: minute},
		},
		"before returns no context": {
			node: func(calls *trace) widgetNode {
				return &widgetAdvice{
					Before: func(context.Context, *resources.Widget) (context.Context, reconcilers.Result, error) {
						return nil, minute, nil
					},
					Reconciler: &widgetSync{Name: "node", Sync: func(ctx context.Context, _ *resources.Widget) error {
						calls.add("%s", reconcilers.RetrievePath(ctx))
						return nil
					}},
				}
			},
			calls:      []string{"Advice/node"},
			widgetCase: widgetCase{ExpectedResult: minute},
		},
		"before fails": {
			node: func(calls *trace) widgetNode {
				return &widgetAdvice{
					Before:     before(calls, minute, errBoom),
					Around:     around(calls, 1),
					After:      after(calls, hour, nil),
					Reconciler: calls.step("node", hour, nil),
				}
			},
			calls:      []string{"before"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
		"around skips the node": {
			node: func(calls *trace) widgetNode {
				return &widgetAdvice{Around: around(calls, 0), Reconciler: calls.step("node", hour, errBoom)}
			},
			calls: []string{"around <nil>"},
		},
		"around runs the node again": {
			node: func(calls *trace) widgetNode {
				return &widgetAdvice{Around: around(calls, 2), Reconciler: calls.step("node", hour, nil)}
			},
			calls:      []string{"around <nil>", "node", "node"},
			widgetCase: widgetCase{ExpectedResult: hour},
		},
		"after drops an error": {
			node: func(calls *trace) widgetNode {
				return &widgetAdvice{After: after(calls, minute, nil), Reconciler: calls.step("node", hour, errBoom)}
			},
			calls:      []string{"node", "after <nil>: 1h0m0s, boom"},
			widgetCase: widgetCase{ExpectedResult: minute},
		},
		"after returns another error": {
			node: func(calls *trace) widgetNode {
				return &widgetAdvice{After: after(calls, minute, bang), Reconciler: calls.step("node", hour, errBoom)}
			},
			calls:      []string{"node", "after <nil>: 1h0m0s, boom"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(bang, minute)},
		},
	}.run(t)
}

func TestAdviceValidate(t *testing.T) {
	valid := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}
	invalid := &widgetSync{}
	before := func(context.Context, *resources.Widget) (context.Context, reconcilers.Result, error) {
		return nil, reconcilers.Result{}, nil
	}
	const missing = `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`
	validationTests{
		"empty":            {node: &widgetAdvice{}, shallow: `Advice "Advice" must implement Reconciler`},
		"only a function":  {node: &widgetAdvice{Name: "mine", Before: before}, shallow: `Advice "mine" must implement Reconciler`},
		"only a node":      {node: &widgetAdvice{Reconciler: valid}},
		"a function, node": {node: &widgetAdvice{Before: before, Reconciler: widgetAlways{}}},
		"bad node":         {node: &widgetAdvice{Reconciler: invalid}, recursive: `Advice "Advice" must have a valid Reconciler: ` + missing},
	}.run(t)
}
