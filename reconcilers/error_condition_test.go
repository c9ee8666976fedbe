package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"
	"github.com/espalier-dev/espalier/validation"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestErrorCondition(t *testing.T) {
	errForbidden := apierrs.NewForbidden(configMapResource, "a", errBoom)
	const forbidden = `configmaps "a" is forbidden: boom`
	var reconciled, unchanged = "True Reconciled: ", ""
	for name, test := range map[string]struct {
		err      error
		at       map[error]string
		expected string
	}{
		"none":                  {nil, nil, reconciled},
		"halt":                  {reconcilers.ErrHaltSubReconcilers, nil, reconciled},
		"halt, wrapped":         {fmt.Errorf("wait: %w", reconcilers.ErrHaltSubReconcilers), nil, reconciled},
		"durable":               {reconcilers.ErrDurable, nil, reconciled},
		"quiet":                 {errQuiet, nil, unchanged},
		"failure, quiet":        {errors.Join(errBoom, reconcilers.ErrQuiet), nil, unchanged},
		"failure, durable":      {errors.Join(errBoom, reconcilers.ErrDurable), nil, unchanged},
		"stale":                 {statusConflict, nil, unchanged},
		"stale, wrapped":        {fmt.Errorf("write: %w", statusConflict), map[error]string{statusConflict: "Root/0"}, unchanged},
		"all stale":             {errors.Join(statusConflict, statusConflict), nil, unchanged},
		"a node":                {errBoom, map[error]string{errBoom: "Root/0/Sync"}, "False Retry: Root/0/Sync: ConfigMap a: boom"},
		"another class":         {errForbidden, map[error]string{errForbidden: "Root"}, "False Forbidden: Root: ConfigMap a: " + forbidden},
		"wrapped on its way":    {fmt.Errorf("late: %w", errBoom), map[error]string{errBoom: "Root"}, "False Retry: Root: ConfigMap a: late: boom"},
		"no node":               {errBoom, nil, "False Retry: boom"},
		"lines":                 {errors.New("a\nb"), nil, "False Retry: a; b"},
		"joined":                {errors.Join(errForbidden, errBoom), map[error]string{errForbidden: "Root/0", errBoom: "Root/1"}, "False Forbidden: Root/0: ConfigMap a: " + forbidden + "; Root/1: ConfigMap a: boom"},
		"joined, aggregate":     {utilerrors.NewAggregate([]error{errBoom, errForbidden}), map[error]string{errForbidden: "Root/0", errBoom: "Root/1"}, "False Retry: Root/1: ConfigMap a: boom; Root/0: ConfigMap a: " + forbidden},
		"joined, one is stale":  {errors.Join(statusConflict, errForbidden), nil, "False Forbidden: " + forbidden},
		"joined, with text":     {fmt.Errorf("both: %w, %w", errBoom, errForbidden), map[error]string{errBoom: "Root"}, "False Retry: Root: ConfigMap a: both: boom, " + forbidden},
		"joined twice the same": {errors.Join(errBoom, errBoom), nil, "False Retry: boom"},
		"of another root":       {&reconcilers.Error{Path: "Other", Class: reconcilers.ClassTerminal, Err: errBoom}, nil, "False Terminal: Other: boom"},
		"without a class":       {&reconcilers.Error{Path: "Other", Err: errBoom}, nil, "False Retry: Other: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			condition, ok := reconcilers.ErrorConditionOf(test.err, test.at)
			said := ""
			if ok {
				said = fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
			}
			if said != test.expected {
				t.Errorf("the condition says\n%q, expected\n%q", said, test.expected)
			}
		})
	}
	joined := errors.Join(errBoom, errForbidden)
	condition, _ := reconcilers.ErrorConditionOf(joined, map[error]string{joined: "Root/Set"})
	if expected := "Root/Set: ConfigMap a: boom; " + forbidden; condition.Message != expected {
		t.Errorf("an error of one node says %q, expected %q", condition.Message, expected)
	}
	condition, _ = reconcilers.ErrorConditionOf(errors.New(strings.Repeat("ä", 40_000)), nil)
	if n := len(condition.Message); n > 1024 || n < 1000 || !utf8.ValidString(condition.Message) {
		t.Errorf("a long message has %d bytes, want 1000 to 1024 of valid UTF-8: %q", n, condition.Message)
	}
}

const widgetReconciled = "Reconciled"

// shows is how a Widget looks whose error condition says that, since its first request.
func shows(status metav1.ConditionStatus, reason, message string) func(*resources.Widget) {
	return func(w *resources.Widget) {
		ctx := rtime.StashNow(context.Background(), requestTime)
		reconcilers.SetCondition(ctx, w, metav1.Condition{
			Type: widgetReconciled, Status: status, Reason: reason, Message: message, ObservedGeneration: w.Generation,
		})
	}
}

func TestResourceReconcilerErrorCondition(t *testing.T) {
	const said = "WidgetResourceReconciler/SyncReconciler: boom"
	fine, failed := shows(metav1.ConditionTrue, "Reconciled", ""), shows(metav1.ConditionFalse, "Retry", said)
	root := func(err error, change func(*widgetRoot)) func(*trace) *widgetRoot {
		return func(*trace) *widgetRoot {
			r := &widgetRoot{
				ErrorCondition: widgetReconciled,
				Reconciler: &widgetSync{
					SyncDuringFinalization: true, Sync: func(context.Context, *resources.Widget) error { return err },
				},
			}
			if change != nil {
				change(r)
			}
			return r
		}
	}
	type rtest = rtesting.ReconcilerTestCase
	given := func(changes ...func(*resources.Widget)) []client.Object {
		return []client.Object{steadyWidget.With(changes...)}
	}
	updated := []rtesting.Event{statusUpdated}
	withFinalizer := terminating(ours)
	rootTests{
		"first, fine":     {root: root(nil, nil), ReconcilerTestCase: rtest{GivenObjects: given(), ExpectStatusUpdates: given(fine), ExpectEvents: updated}},
		"still fine":      {root: root(nil, nil), ReconcilerTestCase: rtest{GivenObjects: given(fine)}},
		"fails":           {root: root(errBoom, nil), ReconcilerTestCase: rtest{GivenObjects: given(fine), ExpectStatusUpdates: given(fine, failed), ExpectEvents: updated, ShouldErr: true}},
		"fails again":     {root: root(errBoom, nil), ReconcilerTestCase: rtest{GivenObjects: given(failed), ShouldErr: true}},
		"fails otherwise": {root: root(errors.New("bang"), nil), ReconcilerTestCase: rtest{GivenObjects: given(failed), ExpectStatusUpdates: given(failed, shows("False", "Retry", "WidgetResourceReconciler/SyncReconciler: bang")), ExpectEvents: updated, ShouldErr: true}},
		"not printable":   {root: root(errors.New("\x1b[31mred \u202eder"), nil), ReconcilerTestCase: rtest{GivenObjects: given(failed), ExpectStatusUpdates: given(failed, shows("False", "Retry", "WidgetResourceReconciler/SyncReconciler: [31mred der")), ExpectEvents: updated, ShouldErr: true}},
		"recovers":        {root: root(nil, nil), ReconcilerTestCase: rtest{GivenObjects: given(failed), ExpectStatusUpdates: given(failed, fine), ExpectEvents: updated}},
		"halts":           {root: root(reconcilers.ErrHaltSubReconcilers, nil), ReconcilerTestCase: rtest{GivenObjects: given(failed), ExpectStatusUpdates: given(failed, fine), ExpectEvents: updated}},
		"waits quietly":   {root: root(errQuiet, nil), ReconcilerTestCase: rtest{GivenObjects: given(failed), ExpectedResult: requeue}},
		"stale":           {root: root(statusConflict, nil), ReconcilerTestCase: rtest{GivenObjects: given(fine), ShouldErr: true}},
		"the status is stale": {root: root(errBoom, nil), ReconcilerTestCase: rtest{
			GivenObjects: given(fine), WithReactors: failStatusWrite(statusConflict), ExpectStatusUpdates: given(fine, failed), ShouldErr: true, Verify: returns(errBoom),
		}},
		"no status update": {root: root(errBoom, func(r *widgetRoot) { r.SkipStatusUpdate = true }), ReconcilerTestCase: rtest{GivenObjects: given(fine), ShouldErr: true}},
		"not asked for":    {root: root(errBoom, func(r *widgetRoot) { r.ErrorCondition = "" }), ReconcilerTestCase: rtest{GivenObjects: given(), ShouldErr: true}},
		"terminating":      {root: root(errBoom, nil), ReconcilerTestCase: rtest{GivenObjects: given(fine, withFinalizer), ShouldErr: true}},
		"terminating, with the status": {root: root(errBoom, func(r *widgetRoot) { r.SyncStatusDuringFinalization = true }), ReconcilerTestCase: rtest{
			GivenObjects: given(fine, withFinalizer), ExpectStatusUpdates: given(fine, failed, withFinalizer), ExpectEvents: updated, ShouldErr: true,
		}},
	}.run(t)
}

// The transition time is the time of the request, and moves only with the status.
func TestErrorConditionTransitionTime(t *testing.T) {
	var failing error
	root := &widgetRoot{
		ErrorCondition: widgetReconciled,
		Reconciler:     &widgetSync{Sync: func(context.Context, *resources.Widget) error { return failing }},
		Config:         expectWidget(steadyWidget).Config(),
	}
	var times []time.Duration
	for minute, err := range []error{nil, errBoom, errors.New("bang"), nil, nil} {
		failing = err
		now := requestTime.Add(time.Duration(minute) * 10 * time.Minute)
		_, _ = root.Reconcile(rtime.StashNow(t.Context(), now), widgetRequest)
		times = append(times, conditionOf(t, root.Config, widgetReconciled).LastTransitionTime.Sub(requestTime))
	}
	if expected := []time.Duration{0, 10 * time.Minute, 10 * time.Minute, 30 * time.Minute, 30 * time.Minute}; !slices.Equal(times, expected) {
		t.Errorf("the transitions were at %v, expected %v", times, expected)
	}
}

func conditionOf(t *testing.T, c client.Client, conditionType string) metav1.Condition {
	t.Helper()
	found := &resources.Widget{}
	if err := c.Get(t.Context(), widgetKey, found); err != nil {
		t.Fatal(err)
	}
	condition := found.Status.GetCondition(conditionType)
	if condition == nil {
		t.Fatalf("there is no condition %s, want one", conditionType)
	}
	return *condition
}

// A text that differs in each request must not wake the controller for ever, since each write of the status does.
func TestErrorConditionWithAnUnstableText(t *testing.T) {
	expect := expectWidget(steadyWidget)
	writes := 0
	expect.WithReactors = []rtesting.ReactionFunc{func(action rtesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "update" && action.GetSubresource() == "status" {
			writes++
		}
		return false, nil, nil
	}}
	attempts := 0
	root := &widgetRoot{
		ErrorCondition: widgetReconciled,
		Reconciler: &widgetSync{Sync: func(context.Context, *resources.Widget) error {
			attempts++
			return fmt.Errorf("attempt %d", attempts)
		}},
		Config: expect.Config(),
	}
	try := func(after time.Duration) {
		if _, err := root.Reconcile(rtime.StashNow(t.Context(), requestTime.Add(after)), widgetRequest); err == nil {
			t.Error("the error is nil, want one")
		}
	}
	for range 100 {
		try(time.Second)
	}
	if writes != 4 {
		t.Errorf("the status was written %d times in a second, want 4 times", writes)
	}
	try(2 * time.Minute)
	if message := conditionOf(t, root.Config, widgetReconciled).Message; !strings.HasSuffix(message, "attempt 101") {
		t.Errorf("after two minutes the condition says %q, want attempt 101", message)
	}
}

// An error of the tree is more important than the summary of what its nodes say.
func TestErrorConditionMayBeTheSummary(t *testing.T) {
	var failing error
	root := &widgetRoot{
		ErrorCondition:   resources.WidgetReady,
		SummaryCondition: resources.WidgetReady,
		Reconciler:       &widgetSync{Sync: func(context.Context, *resources.Widget) error { return failing }},
		Config:           expectWidget(steadyWidget).Config(),
	}
	var said []string
	for _, failing = range []error{nil, errBoom, nil} {
		_, _ = root.Reconcile(t.Context(), widgetRequest)
		said = append(said, conditionOf(t, root.Config, resources.WidgetReady).Reason)
	}
	if expected := []string{"Ready", "Retry", "Ready"}; !slices.Equal(said, expected) {
		t.Errorf("the condition said %q, expected %q", said, expected)
	}
}

func TestErrorConditionNeedsConditions(t *testing.T) {
	checkErrorConditionType[*resources.Widget](t, nil, true)
	checkErrorConditionType[*shaped[*generationAndConditions]](t, nil, true)
	checkErrorConditionType(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing"}}, true)
	checkErrorConditionType[*statusless](t, nil, false)
	checkErrorConditionType[*shaped[ownConditions]](t, nil, false)
}

func checkErrorConditionType[T client.Object](t *testing.T, sample T, valid bool) {
	t.Helper()
	root := &reconcilers.ResourceReconciler[T]{
		Type: sample, ErrorCondition: widgetReconciled, Reconciler: reconcilers.Sequence[T]{},
	}
	err := root.Validate(validation.WithRecursive(t.Context()))
	if valid != (err == nil) || err != nil && !strings.Contains(err.Error(), "must have a status with Conditions") {
		t.Errorf("the error for %T is %v, want none: %t, or one about its status", sample, err, valid)
	}
}

// A root of unstructured resources shows errors too.
func TestErrorConditionUnstructured(t *testing.T) {
	sample := &unstructured.Unstructured{}
	sample.SetGroupVersionKind(resources.GroupVersion.WithKind("Widget"))
	failing := errBoom
	root := &reconcilers.ResourceReconciler[*unstructured.Unstructured]{
		Type:           sample,
		ErrorCondition: widgetReconciled,
		Reconciler: &reconcilers.SyncReconciler[*unstructured.Unstructured]{
			Sync: func(context.Context, *unstructured.Unstructured) error { return failing },
		},
		Config: expectWidget(steadyWidget).Config(),
	}
	for _, failing = range []error{errBoom, nil} {
		_, _ = root.Reconcile(t.Context(), widgetRequest)
		if condition := conditionOf(t, root.Config, widgetReconciled); (condition.Status == metav1.ConditionTrue) != (failing == nil) {
			t.Errorf("with the error %v the condition is %v, want it true: %t", failing, condition, failing == nil)
		}
	}
}

// describedNode is a node that says which condition it sets.
type describedNode struct {
	widgetSync
	condition string
}

func (n *describedNode) Describe() reconcilers.Description {
	return reconcilers.Description{Kind: "Described", Name: "Marker", Conditions: []string{n.condition}}
}

// A condition that a node and the root set would say now this, now that.
func TestNoNodeSetsTheConditionsOfTheRoot(t *testing.T) {
	for name, test := range map[string]struct {
		summary, errors, node string
		expected              string
	}{
		"none":           {"", "", "Ready", ""},
		"others":         {"Ready", "Reconciled", "Marked", ""},
		"no condition":   {"", "", "", ""},
		"the summary":    {"Ready", "", "Ready", `ResourceReconciler "root" sets the condition Ready, so node 0/Marker must set another one`},
		"the errors":     {"", "Reconciled", "Reconciled", `ResourceReconciler "root" sets the condition Reconciled, so node 0/Marker must set another one`},
		"both are Ready": {"Ready", "Ready", "Ready", `ResourceReconciler "root" sets the condition Ready, so node 0/Marker must set another one`},
	} {
		root := &widgetRoot{
			Name: "root", SummaryCondition: test.summary, ErrorCondition: test.errors,
			Reconciler: widgetSequence{&describedNode{condition: test.node}},
		}
		said := ""
		if err := root.Validate(t.Context()); err != nil {
			said = err.Error()
		}
		if said != test.expected {
			t.Errorf("%s: validation says %q, expected %q", name, said, test.expected)
		}
	}
}
