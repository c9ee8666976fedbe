package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
)

type widgetReverse = reconcilers.ReverseOnDeletion[*resources.Widget]

func TestReverseOnDeletion(t *testing.T) {
	nothing := reconcilers.Result{}
	failed := errors.New("failed")
	terminating := terminatingWidget.Object()
	finalizer := terminating.Finalizers[0]
	steps := func(result reconcilers.Result, err error) func(*trace) widgetNode {
		return func(calls *trace) widgetNode {
			return widgetReverse{calls.step("a", minute, nil), calls.step("b", result, err), calls.step("c", nothing, nil)}
		}
	}
	guarded := func(name string) func(*trace) widgetNode {
		return func(calls *trace) widgetNode {
			return widgetReverse{calls.step("a", nothing, nil), widgetSequence{&reconcilers.WithFinalizer[*resources.Widget]{
				Finalizer: name, Reconciler: calls.step("b", nothing, nil),
				ReadyToClearFinalizer: func(context.Context, *resources.Widget) bool { return false },
			}}}
		}
	}
	nodeTests{
		"empty":              {node: func(*trace) widgetNode { return widgetReverse{} }, calls: []string{}},
		"empty, terminating": {node: func(*trace) widgetNode { return widgetReverse{} }, calls: []string{}, widgetCase: widgetCase{Resource: terminating}},
		"in order": {
			node: steps(nothing, nil), calls: []string{"a", "b", "c"}, widgetCase: widgetCase{ExpectedResult: minute},
		},
		"stops at an error, as a Sequence does": {
			node: steps(nothing, failed), calls: []string{"a", "b"}, widgetCase: widgetCase{ExpectedErr: failed},
		},
		"in reverse order, terminating": {
			node: steps(nothing, nil), calls: []string{"c", "b", "a"},
			widgetCase: widgetCase{Resource: terminating, ExpectedResult: minute},
		},
		"stops at an error, terminating": {
			node: steps(nothing, failed), calls: []string{"c", "b"},
			widgetCase: widgetCase{Resource: terminating, ExpectedErr: failed},
		},
		"waits for a node that asks to come back": {
			node: steps(minute, nil), calls: []string{"c", "b"},
			widgetCase: widgetCase{Resource: terminating, ExpectedResult: minute},
		},
		"waits for a node that asks for a requeue": {
			node: steps(requeue, nil), calls: []string{"c", "b"},
			widgetCase: widgetCase{Resource: terminating, ExpectedResult: requeue},
		},
		"waits for a node whose finalizer is there": {
			node: guarded(finalizer), calls: []string{"b"}, widgetCase: widgetCase{Resource: terminating},
		},
		"does not wait for a finalizer that is not there": {
			node: guarded("example.com/none"), calls: []string{"b", "a"}, widgetCase: widgetCase{Resource: terminating},
		},
	}.run(t)
}

// The order in which a node is set up and described is that of the list, and a missing node is found.
func TestReverseOnDeletionIsAList(t *testing.T) {
	step := &widgetSync{Name: "step", Sync: func(context.Context, *resources.Widget) error { return nil }}
	const want = "ReverseOnDeletion\n├─ SyncReconciler \"step\"\n└─ Sequence\n"
	if got := reconcilers.Describe(widgetReverse{step, widgetSequence{}}).String(); got != want {
		t.Errorf("it is described as %s, want %s", got, want)
	}
	const names = "ReverseOnDeletion must have a valid ReverseOnDeletion[1]: must not be nil"
	missing := widgetReverse{step, nil}
	for what, err := range map[string]error{
		"validate":  missing.Validate(t.Context()),
		"set-up":    missing.SetupWithManager(t.Context(), nil, nil),
		"reconcile": func() error { _, err := missing.Reconcile(t.Context(), terminatingWidget.Object()); return err }(),
	} {
		if err == nil || err.Error() != names {
			t.Errorf("the error of %s is %v, want %s", what, err, names)
		}
	}
}
