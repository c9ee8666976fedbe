package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type while = reconcilers.While[*resources.Widget]

// fewer holds for the first iterations.
func fewer(than int) func(context.Context, *resources.Widget) bool {
	return func(ctx context.Context, _ *resources.Widget) bool { return reconcilers.RetrieveIteration(ctx) < than }
}

func TestWhileLimits(t *testing.T) {
	for name, test := range map[string]struct {
		needed   int
		limit    *int
		runs     int
		exceeded bool
	}{
		"no iteration":              {needed: 0, runs: 0},
		"some":                      {needed: 5, runs: 5},
		"as many as the default":    {needed: 100, runs: 100},
		"more than the default":     {needed: 101, runs: 100, exceeded: true},
		"as many as a limit":        {needed: 3, limit: new(3), runs: 3},
		"more than a limit":         {needed: 4, limit: new(3), runs: 3, exceeded: true},
		"more than the default may": {needed: 300, limit: new(1000), runs: 300},
		"no limit":                  {needed: 1234, limit: new(0), runs: 1234},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			node := &while{
				MaxIterations: test.limit,
				Condition:     fewer(test.needed),
				Reconciler: &widgetSync{SyncWithResult: func(context.Context, *resources.Widget) (reconcilers.Result, error) {
					runs++
					return reconcilers.Result{RequeueAfter: time.Minute + time.Duration(runs)*time.Second}, nil
				}},
			}
			result, err := node.Reconcile(testContext(t, expectWidget().Config()), widget.Object())
			if runs != test.runs {
				t.Errorf("ran %d times, expected %d", runs, test.runs)
			}
			expected := nothing
			if test.runs > 0 {
				expected = reconcilers.Result{RequeueAfter: time.Minute + time.Second}
			}
			if result != expected {
				t.Errorf("returned %+v, expected %+v", result, expected)
			}
			var exceeded *reconcilers.ErrMaxIterations
			if errors.As(err, &exceeded) != test.exceeded {
				t.Fatalf("error is %v", err)
			}
			if test.exceeded && (exceeded.Iterations != test.runs || err.Error() != fmt.Sprintf("exceeded max iterations: %d", test.runs)) {
				t.Errorf("error is %v after %d iterations", err, exceeded.Iterations)
			}
		})
	}
}

func TestWhileTellsTheIteration(t *testing.T) {
	note := func(calls *trace, what string) widgetNode {
		return &hooks{reconcile: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
			calls.add("%s %d", what, reconcilers.RetrieveIteration(ctx))
			return nothing, nil
		}}
	}
	nodeTests{
		"the innermost": {
			node: func(calls *trace) widgetNode {
				return widgetSequence{
					&while{Condition: fewer(2), Reconciler: widgetSequence{
						note(calls, "outer"),
						&while{Condition: fewer(2), Reconciler: note(calls, "inner")},
						note(calls, "outer again"),
					}},
					note(calls, "outside"),
				}
			},
			calls: []string{
				"outer 0", "inner 0", "inner 1", "outer again 0",
				"outer 1", "inner 0", "inner 1", "outer again 1", "outside -1",
			},
		},
		"stops at an error, and keeps the results": {
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
			node: func(calls *trace) widgetNode {
				return &while{Condition: fewer(5), Reconciler: &hooks{reconcile: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
					i := reconcilers.RetrieveIteration(ctx)
					calls.add("run %d", i)
					if i == 1 {
						return twoMinutes, errBoom
					}
					return minute, nil
				}}}
			},
			calls: []string{"run 0", "run 1"},
		},
	}.run(t)
}

func forEach[I any](calls *trace, of []I, inner ...widgetNode) *reconcilers.ForEach[*resources.Widget, I] {
	note := &hooks{reconcile: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
		cursor := reconcilers.CursorStasher[I]().RetrieveOrDie(ctx)
		calls.add("%d of %d: %v", cursor.Index, cursor.Length, cursor.Item)
		return nothing, nil
	}}
	return &reconcilers.ForEach[*resources.Widget, I]{
		Items:      func(context.Context, *resources.Widget) ([]I, error) { return of, nil },
		Reconciler: append(widgetSequence{note}, inner...),
	}
}

func TestForEachOutcomes(t *testing.T) {
	results := []reconcilers.Result{twoMinutes, minute, nothing}
	returning := func(calls *trace, failsAt int) widgetNode {
		return &hooks{reconcile: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
			cursor := reconcilers.CursorStasher[string]().RetrieveOrDie(ctx)
			calls.add("%s", cursor.Item)
			if cursor.Index == failsAt {
				return nothing, errBoom
			}
			return results[cursor.Index], nil
		}}
	}
	abc := items("a", "b", "c")
	type forEach = reconcilers.ForEach[*resources.Widget, string]
	nodeTests{
		"no items": {
			node: func(calls *trace) widgetNode {
				return &forEach{Items: items[string](), Reconciler: returning(calls, -1)}
			},
			calls: []string{},
		},
		"aggregates": {
			widgetCase: widgetCase{ExpectedResult: minute},
			node:       func(calls *trace) widgetNode { return &forEach{Items: abc, Reconciler: returning(calls, -1)} },
			calls:      []string{"a", "b", "c"},
		},
		"ends at an error": {
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, twoMinutes)},
			node:       func(calls *trace) widgetNode { return &forEach{Items: abc, Reconciler: returning(calls, 1)} },
			calls:      []string{"a", "b"},
		},
		"an error of the items": {
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(errBoom, nothing)},
			node: func(calls *trace) widgetNode {
				return &forEach{
					Items:      func(context.Context, *resources.Widget) ([]string, error) { return []string{"a"}, errBoom },
					Reconciler: returning(calls, -1),
				}
			},
			calls: []string{},
		},
	}.run(t)
}

func TestForEachCursors(t *testing.T) {
	nodeTests{
		"interfaces": {
			node:  func(calls *trace) widgetNode { return forEach(calls, []any{1, "two", nil}) },
			calls: []string{"0 of 3: 1", "1 of 3: two", "2 of 3: <nil>"},
		},
		"errors": {
			node:  func(calls *trace) widgetNode { return forEach(calls, []error{errBoom}) },
			calls: []string{"0 of 1: boom"},
		},
		"object pointers": {
			node: func(calls *trace) widgetNode {
				node := forEach(calls, []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, nil})
				node.Reconciler = &hooks{reconcile: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
					calls.add("%t", reconcilers.CursorStasher[*corev1.Pod]().RetrieveOrDie(ctx).Item != nil)
					return nothing, nil
				}}
				return node
			},
			calls: []string{"true", "false"},
		},
		"types of one name": {
			node: func(calls *trace) widgetNode {
				a, b := forEach(calls, []corev1.Event{{Reason: "old"}}), forEach(calls, []eventsv1.Event{{Reason: "new"}})
				b.Reconciler = &hooks{reconcile: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
					calls.add("%s %s", reconcilers.CursorStasher[corev1.Event]().RetrieveOrDie(ctx).Item.Reason,
						reconcilers.CursorStasher[eventsv1.Event]().RetrieveOrDie(ctx).Item.Reason)
					return nothing, nil
				}}
				a.Reconciler = b
				return a
			},
			calls: []string{"old new"},
		},
		"types without a name": {
			node: func(calls *trace) widgetNode {
				return forEach(calls, [][]string{{"a", "b"}}, forEach(calls, []map[string]int{{"c": 1}}), &hooks{
					reconcile: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
						calls.add("%v", reconcilers.CursorStasher[[]string]().RetrieveOrDie(ctx).Item)
						return nothing, nil
					},
				})
			},
			calls: []string{"0 of 1: [a b]", "0 of 1: map[c:1]", "[a b]"},
		},
		"the outer cursor is restored, and none stays": {
			node: func(calls *trace) widgetNode {
				look := &hooks{reconcile: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
					cursor, err := reconcilers.CursorStasher[int]().RetrieveOrError(ctx)
					calls.add("%v %v", cursor.Item, err)
					return nothing, nil
				}}
				return widgetSequence{forEach(calls, []int{7}, forEach(calls, []int{8, 9}), look), look}
			},
			calls: []string{"0 of 1: 7", "0 of 2: 8", "1 of 2: 9", "7 <nil>", "0 value not found in stash"},
		},
	}.run(t)
}
