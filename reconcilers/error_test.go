package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestSentinels(t *testing.T) {
	const quiet = "quiet errors are returned as errors, but not logged or recorded"
	const halt = "stop processing SubReconcilers, without returning an error: " + quiet
	for _, test := range []struct {
		err         error
		text        string
		quiet, halt bool
	}{
		{err: reconcilers.ErrQuiet, text: quiet, quiet: true},
		{err: reconcilers.ErrHaltSubReconcilers, text: halt, quiet: true, halt: true},
		{err: reconcilers.ErrDurable, text: quiet + "\n" + halt, quiet: true, halt: true},
		{err: reconcilers.ErrSkipStatusUpdate, text: "skip ResourceReconciler status update for this request"},
		{
			err:  reconcilers.OnlyReconcileChildStatus,
			text: "skip reconciler create/update/delete behavior for the child resource, while still reflecting the existing child's status on the reconciled resource",
		},
		{err: reconcilers.PatchGenerationMismatch, text: "patch generation did not match target"},
		{err: reconcilers.ErrStashValueNotFound, text: "value not found in stash"},
		{err: reconcilers.ErrStashValueNotAssignable, text: "value found in stash is not of an assignable type"},
	} {
		checkError(t, "sentinel", test.err, test.text)
		if is := errors.Is(test.err, reconcilers.ErrQuiet); is != test.quiet {
			t.Errorf("%q is quiet: %t, want %t", test.text, is, test.quiet)
		}
		if is := errors.Is(test.err, reconcilers.ErrHaltSubReconcilers); is != test.halt {
			t.Errorf("%q halts: %t, want %t", test.text, is, test.halt)
		}
	}
}

func TestClassify(t *testing.T) {
	kind := schema.GroupKind{Kind: "ConfigMap"}
	for name, test := range map[string]struct {
		err      error
		expected reconcilers.Class
	}{
		"unknown": {err: errBoom, expected: reconcilers.ClassRetry},
		"quiet":   {err: reconcilers.ErrQuiet, expected: reconcilers.ClassRetry},
		"halt":    {err: reconcilers.ErrHaltSubReconcilers, expected: reconcilers.ClassWait},
		"durable": {err: fmt.Errorf("%w: %w", errBoom, reconcilers.ErrDurable), expected: reconcilers.ClassTerminal},
		"terminal": {
			err:      fmt.Errorf("hopeless: %w", reconcile.TerminalError(errBoom)),
			expected: reconcilers.ClassTerminal,
		},
		"fields": {
			err: &reconcilers.ApplyConflictError{
				Object: "ConfigMap a",
				Err:    apierrs.NewConflict(configMapResource, "a", errBoom),
			},
			expected: reconcilers.ClassNotOurs,
		},
		"exists": {
			err:      fmt.Errorf("hidden: %w", apierrs.NewAlreadyExists(configMapResource, "a")),
			expected: reconcilers.ClassNotOurs,
		},
		"conflict": {err: statusConflict, expected: reconcilers.ClassConflict},
		"forbidden": {
			err:      apierrs.NewForbidden(configMapResource, "a", errBoom),
			expected: reconcilers.ClassForbidden,
		},
		"unauthorized": {err: apierrs.NewUnauthorized("a"), expected: reconcilers.ClassForbidden},
		"invalid":      {err: apierrs.NewInvalid(kind, "a", nil), expected: reconcilers.ClassTerminal},
		"bad request":  {err: apierrs.NewBadRequest("a"), expected: reconcilers.ClassTerminal},
		"timeout":      {err: apierrs.NewTimeoutError("a", 1), expected: reconcilers.ClassRetry},
		"not found":    {err: apierrs.NewNotFound(configMapResource, "a"), expected: reconcilers.ClassRetry},
		"nil":          {expected: reconcilers.ClassRetry},
		"known already": {
			err:      fmt.Errorf("more: %w", &reconcilers.Error{Class: reconcilers.ClassWait, Err: errBoom}),
			expected: reconcilers.ClassWait,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if class := reconcilers.Classify(test.err); class != test.expected {
				t.Errorf("classified as %s, expected %s", class, test.expected)
			}
		})
	}
}

// The error of a root names the node and the object, in words that are the same in every attempt.
func TestErrorsNameNodeAndObject(t *testing.T) {
	forbidden := apierrs.NewConflict(configMapResource, "gadget", errBoom)
	for name, test := range map[string]struct {
		node     func(*trace) widgetNode
		given    client.Object
		expected string
		class    reconcilers.Class
	}{
		"sync": {
			node: func(*trace) widgetNode {
				return &widgetSync{Sync: func(context.Context, *resources.Widget) error { return errBoom }}
			},
			expected: "WidgetResourceReconciler/SyncReconciler: boom",
			class:    reconcilers.ClassRetry,
		},
		"child": {
			node:     changedChild(),
			expected: `WidgetResourceReconciler/ConfigMapChildReconciler: ConfigMap default/gadget: ` + forbidden.Error(),
			class:    reconcilers.ClassConflict,
		},
		"child with a generated name": {
			node:     changedChild(desires(generatedName)),
			expected: `WidgetResourceReconciler/ConfigMapChildReconciler: ConfigMap default/gadget-*: ` + forbidden.Error(),
			class:    reconcilers.ClassConflict,
		},
		"child that is not known": {
			node:     changedChild(failsToDesire(errBoom)),
			expected: "WidgetResourceReconciler/ConfigMapChildReconciler: ConfigMap: boom",
			class:    reconcilers.ClassRetry,
		},
		"child whose reflection fails": {
			node: changedChild(desires(desiresNothing), func(node *configMapNode) {
				node.ReflectChildStatusOnParentWithError = func(
					context.Context, *resources.Widget, *corev1.ConfigMap, error,
				) error {
					return errBoom
				}
			}),
			expected: "WidgetResourceReconciler/ConfigMapChildReconciler: ConfigMap: boom",
			class:    reconcilers.ClassRetry,
		},
		"child of a set": {
			node: changedSet([]string{"a"}),
			expected: `WidgetResourceReconciler/ConfigMapChildSetReconciler/a: ConfigMap default/gadget-a: ` +
				forbidden.Error(),
			class: reconcilers.ClassConflict,
		},
		"set whose reflection fails": {
			node:     changedSet(nil, failsToReflect),
			expected: "WidgetResourceReconciler/ConfigMapChildSetReconciler: ConfigMap: cannot be reflected",
			class:    reconcilers.ClassRetry,
		},
		"finalizer": {
			node: func(calls *trace) widgetNode {
				return &widgetFinalizer{Finalizer: ours, Reconciler: calls.step("mine", nothing, nil)}
			},
			expected: "WidgetResourceReconciler/WithFinalizer: Widget default/gadget: " + forbidden.Error(),
			class:    reconcilers.ClassConflict,
		},
		"a node of another package, guarded, terminating": {
			node: func(calls *trace) widgetNode {
				return &widgetFinalizer{Finalizer: ours, Reconciler: calls.step("mine", nothing, errBoom)}
			},
			given:    steadyWidget.With(terminating(ours)),
			expected: "WidgetResourceReconciler/WithFinalizer: boom",
			class:    reconcilers.ClassRetry,
		},
		"a node of another package": {
			node:     func(calls *trace) widgetNode { return calls.step("mine", reconcilers.Result{}, errBoom) },
			expected: "WidgetResourceReconciler/0: boom",
			class:    reconcilers.ClassRetry,
		},
		"a node of another package, on a condition": {
			node: func(calls *trace) widgetNode {
				return &widgetIfThen{
					If:   func(context.Context, *resources.Widget) bool { return true },
					Then: calls.step("mine", reconcilers.Result{}, errBoom),
				}
			},
			expected: "WidgetResourceReconciler/IfThen: boom",
			class:    reconcilers.ClassRetry,
		},
		"a node of another package, guarded": {
			node: func(calls *trace) widgetNode {
				return &widgetFinalizer{Finalizer: ours, Reconciler: calls.step("mine", reconcilers.Result{}, errBoom)}
			},
			expected: "WidgetResourceReconciler/WithFinalizer: boom",
			class:    reconcilers.ClassRetry,
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := test.given
			if given == nil {
				given = steadyWidget
			}
			expect := expectWidget(given)
			expect.WithReactors = []rtesting.ReactionFunc{
				rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{Error: forbidden}),
				func(action rtesting.Action) (bool, runtime.Object, error) {
					return name == "finalizer" && action.GetVerb() == "patch", nil, forbidden
				},
			}
			root := &widgetRoot{Reconciler: widgetSequence{test.node(&trace{})}, Config: expect.Config()}
			for range 2 {
				// The same words in every attempt.
				_, err := root.Reconcile(t.Context(), widgetRequest)
				checkError(t, "root", err, test.expected)
				if class := reconcilers.Classify(err); class != test.class {
					t.Errorf("classified as %s, expected %s", class, test.class)
				}
			}
		})
	}
}
