package reconcilers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// logbook reconciles and collects what is logged at the default level: what was done, the object, and the reason if there is one.
type logbook struct {
	root   *widgetRoot
	config reconcilers.Config
}

// newLogbook keeps a book of a tree that works with the fields of the spec.
func newLogbook(t *testing.T, tree widgetNode, reactors ...rtesting.ReactionFunc) *logbook {
	t.Helper()
	expect := expectWidget(widget.With(func(w *resources.Widget) { w.Spec.Fields = map[string]string{"image": "one"} }))
	expect.WithReactors = append(reactors, assignUID)
	config := expect.Config()
	config.APIReader = config.Client
	config.Tracker = tracker.New(widgetScheme, time.Hour)
	return &logbook{root: &widgetRoot{Reconciler: tree, Config: config}, config: config}
}

// change changes the Widget itself.
func (l *logbook) change(t *testing.T, change func(*resources.Widget)) {
	t.Helper()
	found := &resources.Widget{}
	if err := l.config.Get(t.Context(), widgetKey, found); err != nil {
		t.Fatal(err)
	}
	change(found)
	if err := l.config.Update(t.Context(), found); err != nil {
		t.Fatal(err)
	}
}

// request makes a request and returns its lines, in development mode.
func (l *logbook) request(t *testing.T) []string {
	t.Helper()
	lines := []string{}
	logger := funcr.NewJSON(func(line string) {
		var entry struct{ Msg, Object, Finalizer, Reason, Error string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Error(err)
		}
		words := strings.Fields(strings.Join([]string{entry.Msg, entry.Object, entry.Finalizer}, " "))
		lines = append(lines, strings.Join(words, " ")+": "+entry.Reason+entry.Error)
	}, funcr.Options{Verbosity: 1})
	_, _ = l.root.Reconcile(logr.NewContext(t.Context(), logger), widgetRequest)
	return lines
}

func (l *logbook) check(t *testing.T, when string, expected ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, expected...), l.request(t)); diff != "" {
		t.Errorf("%s: logs differ (-expected, +actual):\n%s", when, diff)
	}
}

// Each change is one line that names the object, and a request without a change has none.
func TestLogsEachChangeOnce(t *testing.T) {
	applied := &configMapNode{
		Name:     "applied",
		OurChild: func(_ *resources.Widget, child *corev1.ConfigMap) bool { return child.Name == "applied" },
		DesiredChild: func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			return desiredPart(w, "applied")
		},
		ChildObjectManager: &reconcilers.ApplyingObjectManager[*corev1.ConfigMap]{
			FieldManager: "widgets",
		},
		ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {},
	}
	updated := &configMapNode{
		Name:     "updated",
		OurChild: func(_ *resources.Widget, child *corev1.ConfigMap) bool { return child.Name == "updated" },
		DesiredChild: func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			return desiredPart(w, "updated")
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
			current.Data = desired.Data
		},
		ReflectChildStatusOnParent: func(ctx context.Context, w *resources.Widget, child *corev1.ConfigMap, _ error) {
			if child == nil {
				w.Status.MarkChildNotReady(ctx, "Absent", "")
				return
			}
			w.Status.MarkChildReady(ctx)
		},
	}
	l := newLogbook(t, &widgetFinalizer{Finalizer: ours, Reconciler: widgetSequence{applied, updated}})
	l.check(t, "at first",
		"added finalizer Widget default/gadget "+ours+": clean-up is needed later",
		"created ConfigMap default/applied: it did not exist",
		"created ConfigMap default/updated: it did not exist",
		"updated status Widget default/gadget: ")
	l.check(t, "again")
	l.check(t, "once more")
	l.change(t, func(w *resources.Widget) { w.Spec.Fields["image"] = "two" })
	l.check(t, "another image",
		"applied ConfigMap default/applied: ",
		"updated ConfigMap default/updated: ")
	l.check(t, "after that")
	l.change(t, func(w *resources.Widget) { w.Spec.Fields["image"] = "" })
	l.check(t, "no image",
		"deleted ConfigMap default/applied: it is not desired",
		"deleted ConfigMap default/updated: it is not desired",
		"updated status Widget default/gadget: ")
	l.check(t, "steadily without")
	if err := l.config.Delete(t.Context(), widget.Object()); err != nil {
		t.Fatal(err)
	}
	l.check(t, "terminating", "removed finalizer Widget default/gadget "+ours+": clean-up is done")
	l.check(t, "gone")
}

func desiredPart(w *resources.Widget, name string) (*corev1.ConfigMap, error) {
	if w.Spec.Fields["image"] == "" {
		return nil, nil
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Data:       map[string]string{"image": w.Spec.Fields["image"]},
	}, nil
}

// The controller logs what a root returns, and a caught error is none.
func TestLogsNoReturnedErrors(t *testing.T) {
	failing := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return errBoom }}
	fails := func(verb, kind, subresource string) rtesting.ReactionFunc {
		return rtesting.InduceFailure(verb, kind, rtesting.InduceFailureOpts{Error: errBoom, SubResource: subresource})
	}
	done := func(*trace) widgetNode { return widgetSequence{} }
	for name, l := range map[string]*logbook{
		"a sync":        newLogbook(t, failing, fails("update", "Widget", "status")),
		"the status":    newLogbook(t, widgetSequence{}, fails("update", "Widget", "status")),
		"a finalizer":   newLogbook(t, &widgetFinalizer{Finalizer: ours, Reconciler: done(nil)}, fails("patch", "Widget", ""), fails("update", "Widget", "status")),
		"a child":       newLogbook(t, reflectingChild(&trace{}), fails("create", "ConfigMap", ""), fails("update", "Widget", "status")),
		"the resource":  newLogbook(t, widgetSequence{}, fails("get", "Widget", "")),
		"it is caught":  newLogbook(t, caught(failing), fails("update", "Widget", "status")),
		"caught, child": newLogbook(t, caught(reflectingChild(&trace{})), fails("create", "ConfigMap", ""), fails("update", "Widget", "status")),
	} {
		for range 2 {
			if lines := l.request(t); len(lines) > 0 {
				t.Errorf("%s: the log has %q, want no line", name, lines)
			}
		}
	}
}

func caught(node widgetNode) widgetNode {
	return &reconcilers.TryCatch[*resources.Widget]{
		Try: node,
		Catch: func(context.Context, *resources.Widget, reconcilers.Result, error) (reconcilers.Result, error) {
			return nothing, nil
		},
	}
}

// An error that the author of the resource has to mend is reflected on the resource. It is one line, not one in each
// request.
func TestLogsAReflectedErrorUntilItChanges(t *testing.T) {
	child := reflectingChild(&trace{})
	desired := child.DesiredChild
	child.DesiredChild = func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
		if w.Spec.Fields["image"] == "" {
			return nil, nil
		}
		made, err := desired(ctx, w)
		if made != nil {
			made.OwnerReferences, made.Name = nil, w.Spec.Fields["image"]+"-refused"
		}
		return made, err
	}
	l := newLogbook(t, widgetSequence{child}, refuseNamed("refused"))
	l.root.SkipStatusUpdate = true
	line := func(name string) string {
		return fmt.Sprintf("the child is not as desired ConfigMap default/%[1]s-refused: "+
			`ConfigMap "%[1]s-refused" is invalid: data: Invalid value: "many": must have at most 10 entries`, name)
	}
	set := func(image string) {
		l.change(t, func(w *resources.Widget) { w.Spec.Fields["image"] = image })
	}
	l.check(t, "at first", line("one"))
	l.check(t, "again")
	l.check(t, "and again")
	set("two")
	l.check(t, "another", line("two"))
	l.check(t, "another, again")
	set("")
	l.check(t, "mended")
	set("two")
	l.check(t, "broken again", line("two"))
	l.check(t, "broken again, again")
}

// Outside of a root there is nothing that remembers.
func TestLogsAReflectedErrorOutsideOfARoot(t *testing.T) {
	expect := expectWidget()
	expect.WithReactors = []rtesting.ReactionFunc{refuseNamed(widgetKey.Name)}
	heard := &listener{}
	ctx := logr.NewContext(testContext(t, expect.Config()), heard.logger())
	for range 2 {
		if _, err := reflectingChild(&trace{}).Reconcile(ctx, widget.Object()); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(strings.Join(heard.heard, "\n"), "the child is not as desired"); n != 2 {
		t.Errorf("%d lines are logged, want 2: %q", n, heard.heard)
	}
}

// The difference of an object is logged only if details are asked for, and never an object.
func TestLogsDifferencesAsDetails(t *testing.T) {
	l := newLogbook(t, configMapChild("part"))
	for verbosity, expected := range map[int]bool{1: false, 2: true} {
		var log strings.Builder
		logger := funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{Verbosity: verbosity})
		for _, image := range []string{"three", "four"} {
			l.change(t, func(w *resources.Widget) { w.Spec.Fields["image"] = image })
			if _, err := l.root.Reconcile(logr.NewContext(t.Context(), logger), widgetRequest); err != nil && !errors.Is(err, errBoom) {
				t.Fatal(err)
			}
		}
		if found := strings.Contains(log.String(), "four"); found != expected {
			t.Errorf("at verbosity %d the log has the difference: %t, want %t\n%s", verbosity, found, expected,
				log.String())
		}
	}
}
