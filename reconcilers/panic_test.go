package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
)

// hasCondition is how a Widget looks whose condition says that, since its first request.
func hasCondition(conditionType string, status metav1.ConditionStatus, reason, message string) func(*resources.Widget) {
	return func(w *resources.Widget) {
		ctx := rtime.StashNow(context.Background(), requestTime)
		reconcilers.SetCondition(ctx, w, metav1.Condition{
			Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: w.Generation,
		})
	}
}

// reportingNode panics, and describes conditions that it sets otherwise.
type reportingNode struct {
	widgetNode
	conditions []string
}

func (n reportingNode) Describe() reconcilers.Description {
	return reconcilers.Description{Kind: "reporting", Name: "database", Conditions: n.conditions}
}

// durable is an error that is not retried if a node returns it.
type durable struct{}

func (durable) Error() string { return "boom" }

func (durable) Unwrap() error { return reconcilers.ErrDurable }

// What says that something is ready is False after a request in which nobody looked, because a node panicked. The error
// is retried as any other, and other nodes run.
func TestPanicOfNode(t *testing.T) {
	panics := &widgetSync{Name: "careless", Sync: func(context.Context, *resources.Widget) error { panic(durable{}) }}
	const root = "WidgetResourceReconciler/"
	said := func(path string) string { return root + path + ": panicked: boom" }
	ready, database := apis.ConditionReady, "DatabaseReady"
	wasReady, databaseWasReady := hasCondition(ready, "True", "Ready", ""), hasCondition(database, "True", "Ready", "")
	other := &widgetSync{Name: "other", Sync: func(_ context.Context, w *resources.Widget) error {
		w.Status.AddField("other", "ran")
		return nil
	}}
	otherRan := statusField("other", "ran")
	tests := rootTests{}
	for name, test := range map[string]struct {
		at      string
		tree    widgetNode
		change  func(*widgetRoot)
		given   []func(*resources.Widget)
		becomes []func(*resources.Widget)
	}{
		"ready": {
			at:      "careless",
			tree:    panics,
			becomes: []func(*resources.Widget){hasCondition(ready, "False", "Error", said("careless"))},
		},
		"says it already": {
			at:   "careless",
			tree: panics, given: []func(*resources.Widget){hasCondition(ready, "False", "Error", said("careless"))},
		},
		"error condition": {
			at:   "careless",
			tree: panics, change: func(r *widgetRoot) { r.ErrorCondition = widgetReconciled },
			becomes: []func(*resources.Widget){
				shows("False", "Retry", said("careless")), hasCondition(ready, "False", "Error", said("careless")),
			},
		},
		"the others run": {
			at:   "0/careless",
			tree: reconcilers.Always[*resources.Widget]{panics, other},
			becomes: []func(*resources.Widget){
				otherRan, hasCondition(ready, "False", "Error", said("0/careless")),
			},
		},
		"those after it do not run": {
			at:      "0/careless",
			tree:    widgetSequence{panics, other},
			becomes: []func(*resources.Widget){hasCondition(ready, "False", "Error", said("0/careless"))},
		},
		"a combinator": {
			at:   "IfThen",
			tree: &widgetIfThen{If: func(context.Context, *resources.Widget) bool { panic("boom") }, Then: other},
			becomes: []func(*resources.Widget){
				hasCondition(ready, "False", "Error", said("IfThen")),
			},
		},
		"a condition of its own": {
			at:    "database",
			tree:  reportingNode{panics, []string{database}},
			given: []func(*resources.Widget){databaseWasReady},
			becomes: []func(*resources.Widget){
				hasCondition(ready, "False", "Error", said("database")),
				hasCondition(database, "False", "Error", said("database")),
			},
		},
		"summary": {
			at:     "0/database",
			tree:   widgetSequence{reportingNode{panics, []string{database}}, other},
			change: func(r *widgetRoot) { r.SummaryCondition = ready },
			given:  []func(*resources.Widget){wasReady, databaseWasReady},
			becomes: []func(*resources.Widget){
				hasCondition(ready, "False", "Error", database+": "+said("0/database")),
				hasCondition(database, "False", "Error", said("0/database")),
			},
		},
		"summary of others": {
			at:      "1/careless",
			tree:    widgetSequence{reportingNode{other, []string{database}}, panics},
			change:  func(r *widgetRoot) { r.SummaryCondition = ready },
			given:   []func(*resources.Widget){wasReady, databaseWasReady, otherRan},
			becomes: []func(*resources.Widget){hasCondition(ready, "False", "Error", said("1/careless"))},
		},
		"suppressed as transient": {
			at: "SuppressTransientErrors/careless",
			tree: &reconcilers.SuppressTransientErrors[*resources.Widget, *resources.WidgetList]{
				Threshold: 3, Reconciler: panics,
			},
			becomes: []func(*resources.Widget){
				hasCondition(ready, "False", "Error", said("SuppressTransientErrors/careless")),
			},
		},
	} {
		given := append([]func(*resources.Widget){wasReady}, test.given...)
		row := rtesting.ReconcilerTestCase{
			GivenObjects: []client.Object{steadyWidget.With(given...)},
			ExpectedErr:  errors.New(said(test.at)),
			Verify:       classifiedAs(reconcilers.ClassRetry),
		}
		if test.becomes != nil {
			row.ExpectStatusUpdates = []client.Object{steadyWidget.With(append(given, test.becomes...)...)}
			row.ExpectEvents = []rtesting.Event{statusUpdated}
		}
		tests[name] = rootTest{ReconcilerTestCase: row, root: func(*trace) *widgetRoot {
			r := &widgetRoot{Reconciler: test.tree}
			if test.change != nil {
				test.change(r)
			}
			return r
		}}
	}
	tests.run(t)
}

func classifiedAs(class reconcilers.Class) rtesting.VerifyFunc {
	return func(t *testing.T, _ reconcilers.Result, err error) {
		t.Helper()
		if actual := reconcilers.Classify(err); actual != class {
			t.Errorf("the class of the error is %s, want %s", actual, class)
		}
	}
}

// An author may want the program to end with a panic.
func TestPanicReachesManagerThatDoesNotRecover(t *testing.T) {
	for _, test := range []struct {
		recovers *bool
		want     any
	}{{nil, nil}, {new(true), nil}, {new(false), errBoom}} {
		config := expectWidget(widget).Config()
		config.Tracker = nil
		mgr := newManager(t, &rest.Config{}, ctrl.Options{Controller: ctrlconfig.Controller{RecoverPanic: test.recovers}})
		r := &widgetRoot{Config: config, Reconciler: &widgetSync{
			Sync: func(context.Context, *resources.Widget) error { panic(errBoom) },
		}}
		if err := r.SetupWithManager(t.Context(), mgr); err != nil {
			t.Fatal(err)
		}
		got := func() (value any) {
			defer func() { value = recover() }()
			_, err := r.Reconcile(t.Context(), widgetRequest)
			checkError(t, "reconciling", err, "WidgetResourceReconciler/SyncReconciler: panicked: boom")
			return nil
		}()
		if got != test.want {
			t.Errorf("with RecoverPanic %v the root panics with %v, want %v", test.recovers, got, test.want)
		}
	}
}

// Nodes in a hand-written reconciler are as those of a root.
func TestPanicOfEmbeddedNode(t *testing.T) {
	w := widget.With(hasCondition(apis.ConditionReady, "True", "Ready", "")).Object()
	nodes := &reconcilers.Embedded[*resources.Widget]{
		Name: "nodes", Type: &resources.Widget{}, Config: expectWidget(w).Config(),
		Reconciler: &widgetSync{Sync: func(context.Context, *resources.Widget) error { panic(errBoom) }},
	}
	const said = "nodes/SyncReconciler: panicked: boom"
	_, err := nodes.Reconcile(t.Context(), w)
	checkError(t, "reconciling", err, said)
	ready := reconcilers.GetCondition(w, apis.ConditionReady)
	if ready.Status != metav1.ConditionFalse || ready.Message != said {
		t.Errorf("the condition is %v, want False with %q", ready, said)
	}
}
