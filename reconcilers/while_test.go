package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

// exceeded checks the error of a loop at its limit, and the result that came with it.
func exceeded(iterations int, result reconcilers.Result) func(*testing.T, reconcilers.Result, error) {
	return func(t *testing.T, actual reconcilers.Result, err error) {
		t.Helper()
		var limit *reconcilers.ErrMaxIterations
		if !errors.As(err, &limit) || limit.Iterations != iterations {
			t.Errorf("returned %v, expected a limit of %d", err, iterations)
		}
		checkError(t, "at the limit", err, fmt.Sprintf("exceeded max iterations: %d", iterations))
		if actual != result {
			t.Errorf("returned %+v, expected %+v", actual, result)
		}
	}
}

func TestWhile(t *testing.T) {
	twoMinutes := reconcilers.Result{RequeueAfter: 2 * time.Minute}
	loop := func(holds int, limit *int) func(*trace) widgetNode {
		return func(calls *trace) widgetNode {
			return &widgetWhile{
				Condition: func(ctx context.Context, _ *resources.Widget) bool {
					calls.add("while %d", reconcilers.RetrieveIteration(ctx))
					return reconcilers.RetrieveIteration(ctx) < holds
				},
				Reconciler:    calls.step("node", minute, nil),
				MaxIterations: limit,
			}
		}
	}
	trips := func(n int, last ...string) []string {
		var calls []string
		for i := range n {
			calls = append(calls, fmt.Sprint("while ", i), "node")
		}
		return append(calls, last...)
	}
	nodeTests{
		"never": {
			node:  loop(0, nil),
			calls: trips(0, "while 0"),
		},
		"some times": {
			node:       loop(3, nil),
			calls:      trips(3, "while 3"),
			widgetCase: widgetCase{ExpectedResult: minute},
		},
		"terminating": {
			node:       loop(2, nil),
			calls:      trips(2, "while 2"),
			widgetCase: widgetCase{Resource: terminatingWidget.Object(), ExpectedResult: minute},
		},
		"the default limit": {
			node:       loop(1000, nil),
			calls:      trips(100, "while 100"),
			widgetCase: widgetCase{ShouldErr: true, Verify: exceeded(100, minute)},
		},
		"a limit": {
			node:       loop(10, new(5)),
			calls:      trips(5, "while 5"),
			widgetCase: widgetCase{ShouldErr: true, Verify: exceeded(5, minute)},
		},
		"just as often as the limit allows": {
			node:       loop(5, new(5)),
			calls:      trips(5, "while 5"),
			widgetCase: widgetCase{ExpectedResult: minute},
		},
		"once more than the limit allows": {
			node:       loop(6, new(5)),
			calls:      trips(5, "while 5"),
			widgetCase: widgetCase{ShouldErr: true, Verify: exceeded(5, minute)},
		},
		"no limit": {
			node:       loop(1000, new(0)),
			calls:      trips(1000, "while 1000"),
			widgetCase: widgetCase{ExpectedResult: minute},
		},
		"the node decides how often": {
			node: func(*trace) widgetNode {
				return &widgetWhile{
					Condition: func(_ context.Context, w *resources.Widget) bool { return len(w.Status.Fields["done"]) < 4 },
					Reconciler: syncing(func(ctx context.Context, w *resources.Widget) {
						w.Status.AddField("done", w.Status.Fields["done"]+fmt.Sprint(reconcilers.RetrieveIteration(ctx)))
					}),
				}
			},
			widgetCase: widgetCase{ExpectResource: widget.With(statusField("done", "0123")).Object()},
		},
		"fails": {
			node: func(calls *trace) widgetNode {
				return &widgetWhile{
					Condition: func(context.Context, *resources.Widget) bool { return true },
					Reconciler: &widgetSync{SyncWithResult: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
						calls.add("node")
						if reconcilers.RetrieveIteration(ctx) < 2 {
							return minute, nil
						}
						return twoMinutes, errBoom
					}},
				}
			},
			calls:      []string{"node", "node", "node"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
		"fails at once": {
			node: func(calls *trace) widgetNode {
				return &widgetWhile{
					Condition:  func(context.Context, *resources.Widget) bool { return true },
					Reconciler: calls.step("node", twoMinutes, reconcilers.ErrQuiet),
				}
			},
			calls:      []string{"node"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(reconcilers.ErrQuiet, twoMinutes)},
		},
	}.run(t)
}

// A loop without a limit, over nodes that do not look at their context, ends with the request all the same.
func TestWhileEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := &trace{}
	node := &widgetWhile{
		Condition: iterationsBelow(10),
		Reconciler: syncing(func(ctx context.Context, _ *resources.Widget) {
			calls.add("%d", reconcilers.RetrieveIteration(ctx))
			if reconcilers.RetrieveIteration(ctx) == 2 {
				cancel()
			}
		}),
		MaxIterations: new(0),
	}
	_, err := node.Reconcile(ctx, widget.Object())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want %v", err, context.Canceled)
	}
	checkError(t, "of an interrupted loop", err, `While "While" was interrupted: context canceled`)
	calls.compare(t, []string{"0", "1", "2"})
}

// The iteration is that of the innermost loop, and there is none outside.
func TestRetrieveIteration(t *testing.T) {
	calls := &trace{}
	tell := func(where string) widgetNode {
		return syncing(func(ctx context.Context, _ *resources.Widget) {
			calls.add("%s %d", where, reconcilers.RetrieveIteration(ctx))
		})
	}
	node := widgetSequence{
		tell("before"),
		&widgetWhile{
			Setup: func(ctx context.Context, _ reconcilers.Manager, _ *reconcilers.Builder) error {
				calls.add("set-up %d", reconcilers.RetrieveIteration(ctx))
				return nil
			},
			Condition: iterationsBelow(2),
			Reconciler: widgetSequence{
				tell("outer"),
				&widgetWhile{Condition: iterationsBelow(2), Reconciler: tell("inner")},
				&widgetForEachString{Items: itemsOf("a"), Reconciler: tell("for each")},
			},
		},
		tell("after"),
	}
	ctx := testContext(t, expectWidget().Config())
	if err := node.SetupWithManager(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Reconcile(ctx, widget.Object()); err != nil {
		t.Fatal(err)
	}
	calls.compare(t, []string{
		"set-up -1", "before -1",
		"outer 0", "inner 0", "inner 1", "for each 0",
		"outer 1", "inner 0", "inner 1", "for each 1",
		"after -1",
	})
}

// Each iteration has a context of its own: who keeps one finds in it what was in it.
func TestWhileDoesNotReuseContexts(t *testing.T) {
	var kept []context.Context
	node := &widgetWhile{
		Condition:  iterationsBelow(3),
		Reconciler: syncing(func(ctx context.Context, _ *resources.Widget) { kept = append(kept, ctx) }),
	}
	if _, err := node.Reconcile(t.Context(), widget.Object()); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, ctx := range kept {
		told = append(told, fmt.Sprintf("%d %s", reconcilers.RetrieveIteration(ctx), reconcilers.RetrievePath(ctx)))
	}
	expected := []string{"0 While/0/SyncReconciler", "1 While/1/SyncReconciler", "2 While/2/SyncReconciler"}
	if !slices.Equal(told, expected) {
		t.Errorf("the contexts tell %s, expected %s", strings.Join(told, ", "), strings.Join(expected, ", "))
	}
}

func TestWhileValidate(t *testing.T) {
	holds := iterationsBelow(1)
	valid := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}
	invalid := &widgetSync{}
	const missing = `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`
	validationTests{
		"empty":         {node: &widgetWhile{}, shallow: `While "While" must implement Condition`},
		"no Condition":  {node: &widgetWhile{Name: "mine", Reconciler: valid}, shallow: `While "mine" must implement Condition`},
		"no Reconciler": {node: &widgetWhile{Condition: holds}, shallow: `While "While" must implement Reconciler`},
		"valid":         {node: &widgetWhile{Condition: holds, Reconciler: valid}},
		"no limit":      {node: &widgetWhile{Condition: holds, Reconciler: valid, MaxIterations: new(0)}},
		"a limit":       {node: &widgetWhile{Condition: holds, Reconciler: valid, MaxIterations: new(1)}},
		"less than no limit": {
			node:    &widgetWhile{Condition: holds, Reconciler: valid, MaxIterations: new(-1)},
			shallow: `While "While" may not have a negative MaxIterations`,
		},
		"bad node": {
			node:      &widgetWhile{Condition: holds, Reconciler: invalid},
			recursive: `While "While" must have a valid Reconciler: ` + missing,
		},
	}.run(t)
}

// A negative limit does not turn into a loop without one.
func TestWhileRefusesANegativeLimit(t *testing.T) {
	calls := &trace{}
	node := &widgetWhile{
		Condition:     iterationsBelow(3),
		Reconciler:    calls.step("node", reconcilers.Result{}, nil),
		MaxIterations: new(-1),
	}
	_, err := node.Reconcile(t.Context(), widget.Object())
	checkError(t, "of a request", err, `While "While" may not have a negative MaxIterations`)
	calls.compare(t, []string{})
}
