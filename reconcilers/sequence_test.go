package reconcilers_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

func TestSequence(t *testing.T) {
	twoMinutes := reconcilers.Result{RequeueAfter: 2 * time.Minute}

	aggregates := func(first, second, expected reconcilers.Result) nodeTest {
		return nodeTest{
			node: func(calls *trace) widgetNode {
				return widgetSequence{calls.step("a", first, nil), calls.step("b", second, nil)}
			},
			calls:      []string{"a", "b"},
			widgetCase: widgetCase{ExpectedResult: expected},
		}
	}
	stops := func(err error) nodeTest {
		return nodeTest{
			node: func(calls *trace) widgetNode {
				return widgetSequence{calls.step("a", minute, nil), calls.step("b", twoMinutes, err), calls.step("c", minute, nil)}
			},
			calls:      []string{"a", "b"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsBoth(err, twoMinutes)},
		}
	}
	nodeTests{
		"nil":   {node: func(*trace) widgetNode { return widgetSequence(nil) }, calls: []string{}},
		"empty": {node: func(*trace) widgetNode { return widgetSequence{} }, calls: []string{}},
		"a pointer": {
			node:  func(calls *trace) widgetNode { return &widgetSequence{calls.step("a", reconcilers.Result{}, nil)} },
			calls: []string{"a"},
		},
		"in order": {
			node: func(calls *trace) widgetNode {
				nothing := reconcilers.Result{}
				return widgetSequence{calls.step("a", nothing, nil), calls.step("b", nothing, nil), calls.step("c", nothing, nil)}
			},
			calls: []string{"a", "b", "c"},
		},
		"in order, terminating": {
			node: func(calls *trace) widgetNode {
				return widgetSequence{calls.step("a", reconcilers.Result{}, nil), calls.step("b", reconcilers.Result{}, nil)}
			},
			calls:      []string{"a", "b"},
			widgetCase: widgetCase{Resource: terminatingWidget.Object()},
		},
		"nodes see what those before them did to the resource": {
			node: func(*trace) widgetNode {
				return widgetSequence{
					&widgetSync{Sync: func(_ context.Context, w *resources.Widget) error {
						w.Status.AddField("a", "ran")
						return nil
					}},
					&widgetSync{Sync: func(_ context.Context, w *resources.Widget) error {
						w.Status.AddField("b", "after a "+w.Status.Fields["a"])
						return nil
					}},
				}
			},
			widgetCase: widgetCase{ExpectResource: widget.With(statusField("a", "ran"), statusField("b", "after a ran")).Object()},
		},
		"stops at an error":       stops(errBoom),
		"stops at a quiet error":  stops(reconcilers.ErrQuiet),
		"stops at a halt":         stops(reconcilers.ErrHaltSubReconcilers),
		"stops at a skip":         stops(reconcilers.ErrSkipStatusUpdate),
		"requeue, nothing":        aggregates(requeue, reconcilers.Result{}, requeue),
		"nothing, requeue":        aggregates(reconcilers.Result{}, requeue, requeue),
		"delay, nothing":          aggregates(minute, reconcilers.Result{}, minute),
		"nothing, delay":          aggregates(reconcilers.Result{}, minute, minute),
		"delay, requeue":          aggregates(minute, requeue, minute),
		"requeue, delay":          aggregates(requeue, minute, minute),
		"short delay, long delay": aggregates(minute, twoMinutes, minute),
		"long delay, short delay": aggregates(twoMinutes, minute, minute),
	}.run(t)
}

func TestSequenceValidate(t *testing.T) {
	valid := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}
	invalid := &widgetSync{}
	const missing = `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`
	validationTests{
		"nil":   {node: widgetSequence(nil)},
		"empty": {node: widgetSequence{}},
		"valid": {node: widgetSequence{valid, valid}},
		"invalid": {
			node:      widgetSequence{valid, invalid},
			recursive: "Sequence must have a valid Sequence[1]: " + missing,
		},
		"invalid, by pointer": {
			node:      &widgetSequence{invalid},
			recursive: "Sequence must have a valid Sequence[0]: " + missing,
		},
		// Sequences are written as values, also within each other.
		"invalid, nested": {
			node:      widgetSequence{valid, widgetSequence{valid, valid, invalid}},
			recursive: "Sequence must have a valid Sequence[1]: Sequence must have a valid Sequence[2]: " + missing,
		},
	}.run(t)
}

func TestSequenceSetup(t *testing.T) {
	calls := &trace{}
	node := widgetSequence{
		calls.step("a", reconcilers.Result{}, nil),
		widgetSequence{calls.step("b", reconcilers.Result{}, errBoom), calls.step("c", reconcilers.Result{}, nil)},
		calls.step("d", reconcilers.Result{}, nil),
	}
	if err := node.SetupWithManager(testContext(t, expectWidget().Config()), nil, nil); err != errBoom {
		t.Errorf("set-up returned %v, want %v", err, errBoom)
	}
	calls.compare(t, []string{"set up a", "set up b"})
}

func TestSequenceReportsThePath(t *testing.T) {
	var paths []string
	named := func(name string) widgetNode {
		return &widgetSync{Name: name, Sync: func(ctx context.Context, _ *resources.Widget) error {
			paths = append(paths, reconcilers.RetrievePath(ctx))
			return nil
		}}
	}
	root := &widgetRoot{
		Name:       "Root",
		Reconciler: widgetSequence{named("a"), widgetSequence{named("b"), named("c")}},
		Config:     expectWidget(widget).Config(),
	}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
		t.Fatal(err)
	}
	if expected := []string{"Root/0/a", "Root/1/0/b", "Root/1/1/c"}; !slices.Equal(paths, expected) {
		t.Errorf("the paths are %v, expected %v", paths, expected)
	}
	var described []string
	reconcilers.Describe(root).Walk(func(path string, d reconcilers.Description) {
		if d.Kind == "SyncReconciler" {
			described = append(described, path)
		}
	})
	if !slices.Equal(paths, described) {
		t.Errorf("the description has the paths %v, want those of the request, %v", described, paths)
	}
}
