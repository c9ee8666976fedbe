package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

func TestAlways(t *testing.T) {
	twoMinutes := reconcilers.Result{RequeueAfter: 2 * time.Minute}
	nothing := reconcilers.Result{}

	aggregates := func(first, second, expected reconcilers.Result) nodeTest {
		return nodeTest{
			node: func(calls *trace) widgetNode {
				return widgetAlways{calls.step("a", first, nil), calls.step("b", second, nil)}
			},
			calls:      []string{"a", "b"},
			widgetCase: widgetCase{ExpectedResult: expected},
		}
	}
	goesOn := func(err error) nodeTest {
		return nodeTest{
			node: func(calls *trace) widgetNode {
				return widgetAlways{calls.step("a", requeue, nil), calls.step("b", minute, err), calls.step("c", twoMinutes, nil)}
			},
			calls: []string{"a", "b", "c"},
			widgetCase: widgetCase{
				ShouldErr: true,
				Verify:    returnsBoth(err, reconcilers.AggregateResults(requeue, minute)),
			},
		}
	}
	nodeTests{
		"nil":   {node: func(*trace) widgetNode { return widgetAlways(nil) }, calls: []string{}},
		"empty": {node: func(*trace) widgetNode { return widgetAlways{} }, calls: []string{}},
		"a pointer": {
			node:  func(calls *trace) widgetNode { return &widgetAlways{calls.step("a", nothing, nil)} },
			calls: []string{"a"},
		},
		"in order": {
			node: func(calls *trace) widgetNode {
				return widgetAlways{calls.step("a", nothing, nil), calls.step("b", nothing, nil), calls.step("c", nothing, nil)}
			},
			calls: []string{"a", "b", "c"},
		},
		"in order, terminating": {
			node: func(calls *trace) widgetNode {
				return widgetAlways{calls.step("a", nothing, nil), calls.step("b", nothing, nil)}
			},
			calls:      []string{"a", "b"},
			widgetCase: widgetCase{Resource: terminatingWidget.Object()},
		},
		"nodes see what those before them did to the resource": {
			node: func(*trace) widgetNode {
				return widgetAlways{
					&widgetSync{Sync: func(_ context.Context, w *resources.Widget) error {
						w.Status.AddField("a", "ran")
						return errBoom
					}},
					syncing(func(_ context.Context, w *resources.Widget) { w.Status.AddField("b", "after a "+w.Status.Fields["a"]) }),
				}
			},
			widgetCase: widgetCase{
				ExpectResource: widget.With(statusField("a", "ran"), statusField("b", "after a ran")).Object(),
				ShouldErr:      true,
			},
		},
		"goes on after an error":       goesOn(errBoom),
		"goes on after a quiet error":  goesOn(reconcilers.ErrQuiet),
		"goes on after a halt":         goesOn(reconcilers.ErrHaltSubReconcilers),
		"goes on after a durable halt": goesOn(reconcilers.ErrDurable),
		"goes on after a skip":         goesOn(reconcilers.ErrSkipStatusUpdate),
		"requeue, nothing":             aggregates(requeue, nothing, requeue),
		"nothing, requeue":             aggregates(nothing, requeue, requeue),
		"delay, nothing":               aggregates(minute, nothing, minute),
		"nothing, delay":               aggregates(nothing, minute, minute),
		"delay, requeue":               aggregates(minute, requeue, minute),
		"requeue, delay":               aggregates(requeue, minute, minute),
		"short delay, long delay":      aggregates(minute, twoMinutes, minute),
		"long delay, short delay":      aggregates(twoMinutes, minute, minute),
	}.run(t)
}

func TestAlwaysJoinsErrors(t *testing.T) {
	bang := errors.New("bang")
	quietBoom := fmt.Errorf("%w, which was to be expected: %w", errBoom, reconcilers.ErrQuiet)
	quietSkip := errors.Join(bang, reconcilers.ErrSkipStatusUpdate, reconcilers.ErrQuiet)
	marks := []error{
		errBoom, bang, reconcilers.ErrQuiet, reconcilers.ErrHaltSubReconcilers, reconcilers.ErrDurable, reconcilers.ErrSkipStatusUpdate,
	}
	for name, test := range map[string]struct {
		errs []error
		is   []error
		text string
	}{
		"none":          {errs: []error{nil, nil}},
		"one":           {errs: []error{nil, errBoom, nil}, is: []error{errBoom}, text: "boom"},
		"two":           {errs: []error{errBoom, nil, bang}, is: []error{errBoom, bang}, text: "boom\nbang"},
		"quiet":         {errs: []error{quietBoom}, is: []error{errBoom, reconcilers.ErrQuiet}, text: quietBoom.Error()},
		"quiet, loud":   {errs: []error{quietBoom, bang}, is: []error{bang}, text: "bang"},
		"loud, quiet":   {errs: []error{bang, quietBoom}, is: []error{bang}, text: "bang"},
		"loud, halting": {errs: []error{bang, reconcilers.ErrHaltSubReconcilers}, is: []error{bang}, text: "bang"},
		"loud, durable": {errs: []error{bang, reconcilers.ErrDurable}, is: []error{bang}, text: "bang"},
		"two loud among quiet ones": {
			errs: []error{reconcilers.ErrQuiet, bang, quietBoom, errBoom, reconcilers.ErrHaltSubReconcilers},
			is:   []error{bang, errBoom},
			text: "bang\nboom",
		},
		"two quiet": {
			errs: []error{quietBoom, reconcilers.ErrHaltSubReconcilers},
			is:   []error{errBoom, reconcilers.ErrQuiet, reconcilers.ErrHaltSubReconcilers},
			text: quietBoom.Error() + "\n" + reconcilers.ErrHaltSubReconcilers.Error(),
		},
		// Invariant L6: who asks for the status not to be written is not overheard because another one fails.
		"quiet skip, loud": {
			errs: []error{quietSkip, errBoom},
			is:   []error{reconcilers.ErrSkipStatusUpdate, errBoom},
			text: reconcilers.ErrSkipStatusUpdate.Error() + "\nboom",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var node widgetAlways
			for _, err := range test.errs {
				node = append(node, (&trace{}).step("", reconcilers.Result{}, err))
			}
			_, err := node.Reconcile(t.Context(), widget.Object())
			checkError(t, "joined", err, test.text)
			for _, mark := range marks {
				expected := slices.Contains(test.is, mark)
				if errors.Is(err, mark) != expected {
					t.Errorf("is %q: %v, expected %v", mark, !expected, expected)
				}
			}
		})
	}

	t.Run("a single one stays as it is", func(t *testing.T) {
		for _, single := range []error{errBoom, reconcilers.ErrQuiet, reconcilers.ErrDurable} {
			node := widgetAlways{(&trace{}).step("", minute, nil), (&trace{}).step("", minute, single)}
			if _, err := node.Reconcile(t.Context(), widget.Object()); err != single {
				t.Errorf("returned %#v, expected %#v", err, single)
			}
		}
	})
}

// A node that is missing fails for itself. Such a tree is not valid, but a request must not panic over it.
func TestAlwaysOfMissingNodes(t *testing.T) {
	calls := &trace{}
	node := widgetAlways{calls.step("a", minute, nil), nil, (*widgetSync)(nil), calls.step("b", requeue, nil)}
	result, err := node.Reconcile(t.Context(), widget.Object())
	checkError(t, "of missing nodes", err,
		"Always must have a valid Always[1]: must not be nil\nAlways must have a valid Always[2]: must not be nil")
	if expected := reconcilers.AggregateResults(minute, requeue); result != expected {
		t.Errorf("returned %+v, expected %+v", result, expected)
	}
	calls.compare(t, []string{"a", "b"})
}

func TestAlwaysValidate(t *testing.T) {
	valid := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}
	invalid := &widgetSync{}
	const missing = `SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`
	validationTests{
		"nil":   {node: widgetAlways(nil)},
		"empty": {node: widgetAlways{}},
		"valid": {node: widgetAlways{valid, valid}},
		"invalid": {
			node:      widgetAlways{valid, invalid},
			recursive: "Always must have a valid Always[1]: " + missing,
		},
		"invalid, by pointer": {
			node:      &widgetAlways{invalid},
			recursive: "Always must have a valid Always[0]: " + missing,
		},
		"a nil node": {
			node:    widgetAlways{valid, nil},
			shallow: "Always must have a valid Always[1]: must not be nil",
		},
		// Lists are written as values, also within each other.
		"invalid, nested": {
			node:      widgetSequence{valid, widgetAlways{valid, valid, invalid}},
			recursive: "Sequence must have a valid Sequence[1]: Always must have a valid Always[2]: " + missing,
		},
	}.run(t)
}
