package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// told is an observer that keeps a line for each call.
type told struct {
	mu    sync.Mutex
	lines []string
}

type toldKey struct{}

func (o *told) add(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, fmt.Sprintf(format, args...))
}

func (o *told) Start(ctx context.Context, node *reconcilers.Node) context.Context {
	o.add("start %s", node.Path)
	return context.WithValue(ctx, toldKey{}, node.Path)
}

func (o *told) End(ctx context.Context, node *reconcilers.Node, outcome reconcilers.Outcome) {
	if at := ctx.Value(toldKey{}); at != node.Path {
		o.add("the context of the end of %s is that of %v", node.Path, at)
	}
	line := fmt.Sprintf("end %s %s %s", node.Label, node.Kind, outcome.State)
	if outcome.Class != "" {
		line += " " + string(outcome.Class)
	}
	if outcome.Err != nil {
		line += fmt.Sprintf(" %q", outcome.Err)
	}
	if outcome.Result.RequeueAfter > 0 {
		line += " after " + outcome.Result.RequeueAfter.String()
	}
	for _, c := range outcome.Conditions {
		line += fmt.Sprintf(" %s=%s", c.Type, c.Status)
	}
	o.add("%s", line)
}

func (o *told) Note(ctx context.Context, node *reconcilers.Node, fact any) {
	switch fact := fact.(type) {
	case reconcilers.Write:
		object := strings.TrimSpace(fact.Object.String() + " " + fact.Subresource)
		o.add("%s %s at %s: %s (%v)", fact.Verb, object, node.Path, fact.Reason, fact.Err)
	default:
		o.add("%T at %s", fact, node.Path)
	}
}

// observedWorld is a root over a client in memory, with an observer. Its tree fails with fail, and a create with refuse.
type observedWorld struct {
	told
	root    *widgetRoot
	client  client.WithWatch
	request reconcilers.Request
	fail    func() error
	refuse  error
	data    string
}

func newObservedWorld(t *testing.T) *observedWorld {
	widget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w", UID: "1", Generation: 1}}
	w := &observedWorld{request: ctrl.Request{NamespacedName: client.ObjectKeyFromObject(widget)}}
	inner := fake.NewClientBuilder().WithScheme(resources.NewScheme()).WithObjects(widget).WithStatusSubresource(widget)
	create := func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
		if w.refuse != nil {
			return w.refuse
		}
		obj.SetUID("2")
		obj.SetCreationTimestamp(metav1.Unix(1, 0))
		return c.Create(ctx, obj, o...)
	}
	w.client = interceptor.NewClient(inner.Build(), interceptor.Funcs{Create: create})
	w.root = &widgetRoot{
		Name:           "root",
		ControllerName: "widgets",
		Config:         reconcilers.Config{Client: w.client, APIReader: w.client}.WithObserver(&w.told),
		Reconciler: widgetSequence{
			&widgetSync{Name: "fails", Sync: func(context.Context, *resources.Widget) error { return w.fail() }},
			widgetSequence{
				&reconcilers.ForEach[*resources.Widget, string]{
					Name:       "letters",
					Items:      func(context.Context, *resources.Widget) ([]string, error) { return []string{"a", "b"}, nil },
					Reconciler: &widgetSync{Name: "one", Sync: func(context.Context, *resources.Widget) error { return nil }},
				},
				&configMapNode{
					Name: "settings",
					DesiredChild: func(_ context.Context, widget *resources.Widget) (*corev1.ConfigMap, error) {
						return &corev1.ConfigMap{
							ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name},
							Data:       map[string]string{"key": w.data},
						}, nil
					},
					MergeBeforeUpdate: mergeConfigMap,
					ReflectChildStatusOnParent: func(ctx context.Context, w *resources.Widget, _ *corev1.ConfigMap, _ error) {
						w.Status.MarkChildReady(ctx)
					},
				},
			},
		},
	}
	return w
}

// The stream has each node in order, with how it ended, and each write with its reason. A label has no index.
func TestObserversAreToldWhatNodesDo(t *testing.T) {
	boom := errors.New("boom")
	returns := func(err error) func() error { return func() error { return err } }
	// before is the stream of a request until the child is looked at.
	before := []string{
		"start root", "start root", "start root/0/fails", "end root/fails SyncReconciler Unchanged",
		"start root/1", "start root/1/0/letters",
		"start root/1/0/letters/one", "end root/letters/one SyncReconciler Unchanged",
		"start root/1/0/letters/one", "end root/letters/one SyncReconciler Unchanged",
		"end root/letters ForEach Unchanged", "start root/1/1/settings",
	}
	w := newObservedWorld(t)
	for _, step := range []struct {
		name   string
		fail   func() error
		refuse error
		change func()
		before []string
		want   []string
	}{
		{name: "an error", fail: returns(boom), before: before[:3], want: []string{
			`end root/fails SyncReconciler Error Retry "boom"`,
			`end root Sequence Error Retry "boom"`,
			"update Widget default/w status at root:  (<nil>)",
			`end root ResourceReconciler Error Retry "boom" ChildReady=Unknown Ready=Unknown`,
		}},
		{name: "a panic", fail: func() error { panic("ouch") }, before: before[:3], want: []string{
			`end root/fails SyncReconciler Error Retry "root/0/fails: panicked: ouch"`,
			`end root Sequence Error Retry "root/0/fails: panicked: ouch"`,
			"update Widget default/w status at root:  (<nil>)",
			`end root ResourceReconciler Error Retry "root/0/fails: panicked: ouch" ChildReady=Unknown Ready=False`,
		}},
		{name: "a halt", fail: returns(fmt.Errorf("%w", reconcilers.ErrHaltSubReconcilers)), before: before[:3], want: []string{
			"end root/fails SyncReconciler Halted Wait",
			"end root Sequence Halted Wait",
			"update Widget default/w status at root:  (<nil>)",
			"end root ResourceReconciler Halted ChildReady=Unknown Ready=False",
		}},
		{name: "a durable halt", fail: returns(reconcilers.ErrDurable), before: before[:3], want: []string{
			"end root/fails SyncReconciler Halted Terminal",
			"end root Sequence Halted Terminal",
			"end root ResourceReconciler Halted Terminal ChildReady=Unknown Ready=False",
		}},
		{name: "a durable error", fail: returns(errors.Join(boom, reconcilers.ErrDurable)), before: before[:3], want: []string{
			fmt.Sprintf("end root/fails SyncReconciler Error Terminal %q", errors.Join(boom, reconcilers.ErrDurable)),
			fmt.Sprintf("end root Sequence Error Terminal %q", errors.Join(boom, reconcilers.ErrDurable)),
			fmt.Sprintf("end root ResourceReconciler Error Terminal %q ChildReady=Unknown Ready=False",
				errors.Join(boom, reconcilers.ErrDurable)),
		}},
		{name: "a quiet error", fail: returns(reconcilers.ErrQuiet), before: before[:3], want: []string{
			"end root/fails SyncReconciler Waiting Retry",
			"end root Sequence Waiting Retry",
			"end root ResourceReconciler Waiting Retry ChildReady=Unknown Ready=False",
		}},
		{name: "a refused create", refuse: boom, before: before, want: []string{
			"create ConfigMap default/w at root/1/1/settings:  (boom)",
			`end root/settings ChildReconciler Error Retry "boom"`,
			`end root Sequence Error Retry "boom"`,
			`end root Sequence Error Retry "boom"`,
			`end root ResourceReconciler Error Retry "boom" ChildReady=Unknown Ready=False`,
		}},
		{name: "a create", before: before, want: []string{
			"create ConfigMap default/w at root/1/1/settings: it did not exist (<nil>)",
			"end root/settings ChildReconciler Changed",
			"end root Sequence Changed",
			"end root Sequence Changed",
			"update Widget default/w status at root:  (<nil>)",
			"end root ResourceReconciler Changed ChildReady=True Ready=True",
		}},
		{name: "nothing to do", before: before, want: []string{
			"reconcilers.Saved at root/1/1/settings",
			"end root/settings ChildReconciler Unchanged",
			"end root Sequence Unchanged",
			"end root Sequence Unchanged",
			"end root ResourceReconciler Unchanged ChildReady=True Ready=True",
		}},
		{name: "an update", change: func() { w.data = "new" }, before: before, want: []string{
			"update ConfigMap default/w at root/1/1/settings:  (<nil>)",
			"end root/settings ChildReconciler Changed",
			"end root Sequence Changed",
			"end root Sequence Changed",
			"end root ResourceReconciler Changed ChildReady=True Ready=True",
		}},
		{name: "a resource of another class", change: func() { w.root.SkipResource = isSkipped }, want: []string{
			"start root", "reconcilers.Forgotten at root", "end root ResourceReconciler Unchanged",
		}},
		{name: "the resource is gone", change: func() { w.removeResource(t) }, want: []string{
			"start root", "reconcilers.Forgotten at root", "end root ResourceReconciler Unchanged",
		}},
	} {
		w.fail, w.refuse, w.lines = returns(nil), step.refuse, nil
		if step.fail != nil {
			w.fail = step.fail
		}
		if step.change != nil {
			step.change()
		}
		_, _ = w.root.Reconcile(t.Context(), w.request)
		if diff := cmp.Diff(slices.Concat(step.before, step.want), w.lines); diff != "" {
			t.Errorf("%s: (-want, +told)\n%s", step.name, diff)
		}
	}
}

func (w *observedWorld) removeResource(t *testing.T) {
	t.Helper()
	widget := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: w.request.Namespace, Name: w.request.Name}}
	if err := w.client.Delete(t.Context(), widget); err != nil {
		t.Fatal(err)
	}
}

func isSkipped(context.Context, *resources.Widget) bool { return true }
