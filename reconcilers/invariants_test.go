package reconcilers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// l6Case is one combination of what a tree returns, what it does to the status, and what becomes of the status write.
type l6Case struct {
	tree    error
	delay   time.Duration
	changes bool
	write   error
	keep    bool
}

var errWrite = errors.New("write failed")

func l6Cases() []l6Case {
	trees := []error{
		nil,
		errBoom,
		fmt.Errorf("expected: %w", reconcilers.ErrQuiet),
		reconcilers.ErrHaltSubReconcilers,
		errors.Join(errBoom, reconcilers.ErrDurable),
		errors.Join(reconcilers.ErrQuiet, reconcilers.ErrDurable),
		errors.Join(reconcilers.ErrQuiet, reconcilers.ErrHaltSubReconcilers),
		fmt.Errorf("no write: %w", reconcilers.ErrSkipStatusUpdate),
		errors.Join(reconcilers.ErrSkipStatusUpdate, reconcilers.ErrQuiet),
	}
	writes := []error{nil, statusConflict, errWrite, fmt.Errorf("%w: %w", errWrite, reconcilers.ErrQuiet)}
	var cases []l6Case
	for _, tree := range trees {
		for _, write := range writes {
			for i := range 8 {
				delay := time.Duration(0)
				if i&1 != 0 {
					delay = time.Minute
				}
				cases = append(cases, l6Case{tree: tree, delay: delay, changes: i&2 != 0, write: write, keep: i&4 != 0})
			}
		}
	}
	return cases
}

func (c l6Case) String() string {
	text := func(err error) string {
		if err == nil {
			return "ok"
		}
		return strings.ReplaceAll(err.Error(), "\n", " and ")
	}
	return fmt.Sprintf("tree %s, delay %s, changes %v, write %s, keep %v", text(c.tree), c.delay, c.changes, text(c.write), c.keep)
}

// written reports whether a write of the status is attempted.
func (c l6Case) written() bool {
	return c.changes && !errors.Is(c.tree, reconcilers.ErrSkipStatusUpdate)
}

// durable reports whether the tree wants no other attempt.
func (c l6Case) durable() bool {
	return errors.Is(c.tree, reconcilers.ErrDurable) && errors.Is(c.tree, errBoom)
}

// check tells what is wrong with the outcome: the invariant, and nothing of how it is kept.
func (c l6Case) check(result reconcilers.Result, err error) []string {
	var wrong []string
	loud := func(err error) bool { return err != nil && !errors.Is(err, reconcilers.ErrQuiet) }
	writeErr := c.write
	if !c.written() || writeErr == statusConflict {
		// The change that caused the conflict enqueues the resource.
		writeErr = nil
	}
	if loud(c.tree) && !errors.Is(err, c.tree) {
		wrong = append(wrong, "the error of the tree is lost")
	}
	if loud(writeErr) && !errors.Is(err, writeErr) {
		wrong = append(wrong, "the error of the write is lost")
	}
	if !loud(c.tree) && !loud(writeErr) && err != nil {
		wrong = append(wrong, "an error that was not returned, or that is quiet")
	}
	//lint:ignore SA1019 deprecated, not gone
	comesBack := err != nil || result.Requeue || result.RequeueAfter > 0
	// A halt is no error: it owes what a delay owes.
	halts := c.tree == reconcilers.ErrHaltSubReconcilers
	// Another attempt does not help with a durable error. Its delay counts, and nothing else.
	owes := writeErr != nil || c.tree != nil && !c.durable()
	dropped := (c.tree == nil || halts) && c.written() && c.write == nil && !c.keep
	if owes && !dropped && !comesBack {
		wrong = append(wrong, "a quiet error does not bring the request back")
	}
	conflict := c.written() && c.write == statusConflict
	if conflict && c.keep && !comesBack {
		wrong = append(wrong, "whose events are filtered does not come back after a conflict")
	}
	if !owes && c.durable() && !(conflict && c.keep) && result != (reconcilers.Result{RequeueAfter: c.delay}) {
		wrong = append(wrong, "a durable error is attempted again")
	}
	switch {
	case dropped:
		// The one exception: the event of the write brings the resource back.
		if result != (reconcilers.Result{}) {
			wrong = append(wrong, "compatibility has the result dropped after a write")
		}
	case err != nil:
		// Controller-runtime comes back because of the error, heeds no delay beside it, and warns of one.
		if result != (reconcilers.Result{}) {
			wrong = append(wrong, "a result beside an error")
		}
	case !loud(c.tree) && c.tree != nil && reconcilers.HidesFailure(c.tree) && !c.durable(), writeErr != nil && reconcilers.HidesFailure(writeErr):
		// A failure that is silent brings the request back as one that is not, and not only after the delay.
		if result != requeue {
			wrong = append(wrong, "a silent failure is not tried again with back-off")
		}
	case result.RequeueAfter != c.delay:
		wrong = append(wrong, "the delay is lost")
	}
	return wrong
}

// answering is a client that answers each write of a status with an error, or with success.
type answering struct {
	client.Client
	answer error
}

func (a answering) Status() client.SubResourceWriter { return answer{err: a.answer} }

type answer struct {
	client.SubResourceWriter
	err error
}

func (a answer) Update(_ context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	if a.err == nil {
		obj.SetResourceVersion("1000")
	}
	return a.err
}

func TestL6NothingThatATreeReturnsIsLost(t *testing.T) {
	config := expectWidget(steadyWidget).Config()
	for _, c := range l6Cases() {
		tried := config
		tried.Client = answering{Client: config.Client, answer: c.write}
		root := &widgetRoot{
			KeepResultAfterStatusUpdate: c.keep,
			Reconciler: &widgetSync{SyncWithResult: func(_ context.Context, w *resources.Widget) (reconcilers.Result, error) {
				if c.changes {
					w.Status.AddField("tree", "ran")
				}
				return reconcilers.Result{RequeueAfter: c.delay}, c.tree
			}},
			Config: tried,
		}
		result, err := root.Reconcile(t.Context(), widgetRequest)
		for _, wrong := range c.check(result, err) {
			t.Errorf("%s:\n\t%s: it returned %+v and %v, want this invariant to hold", c, wrong, result, err)
		}
	}
}

// What a root returns tells where the error came up, and is still the error that the node returned.
func TestL6ErrorsLocateTheirNode(t *testing.T) {
	root := &widgetRoot{
		Reconciler: widgetSequence{widgetSequence{&widgetSync{Name: "mine", Sync: func(context.Context, *resources.Widget) error { return errBoom }}}},
		Config:     expectWidget(steadyWidget).Config(),
	}
	_, err := root.Reconcile(t.Context(), widgetRequest)
	var located *reconcilers.Error
	if !errors.As(err, &located) {
		t.Fatalf("the error is of type %T, want a %T", err, located)
	}
	if !errors.Is(err, errBoom) || located.Path != "WidgetResourceReconciler/mine" || located.Class != reconcilers.ClassRetry {
		t.Errorf("the error is %+v, want %v at WidgetResourceReconciler/mine of class %s", located, errBoom,
			reconcilers.ClassRetry)
	}
}

// guardedWays are the ways of guarding state by a finalizer.
func guardedWays() map[string]func(*trace) widgetNode {
	return map[string]func(*trace) widgetNode{
		"short form": guardedShortForm(),
		"manager": func(calls *trace) widgetNode {
			node := guardedShortForm()(calls).(*configMapNode)
			node.Finalizer, node.SkipOwnerReference = "", true
			node.MergeBeforeUpdate = nil
			node.ChildObjectManager = &configMaps{Finalizer: ours, MergeBeforeUpdate: mergeConfigMap, TrackDesired: true}
			return node
		},
		"WithFinalizer": func(calls *trace) widgetNode {
			child := changedChild(withoutOwner)(calls)
			return &widgetFinalizer{
				Finalizer:  ours,
				Reconciler: child,
				ReadyToClearFinalizer: func(ctx context.Context, _ *resources.Widget) bool {
					err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, widgetKey, &corev1.ConfigMap{})
					return apierrs.IsNotFound(err)
				},
			}
		},
	}
}

// A finalizer is on before the state that it guards exists, and goes only when that state is gone: at each call to the API
// server, whichever of them fails.
func TestL3FinalizerBeforeState(t *testing.T) {
	for name, way := range guardedWays() {
		for failing := range 6 {
			t.Run(fmt.Sprintf("%s, call %d fails", name, failing), func(t *testing.T) {
				testL3(t, way, failing)
			})
		}
	}
}

func testL3(t *testing.T, way func(*trace) widgetNode, failing int) {
	expect := expectWidget(steadyWidget)
	var config reconcilers.Config
	exists := func(obj client.Object) bool {
		t.Helper()
		err := config.Get(t.Context(), widgetKey, obj)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil
	}
	writes := 0
	watch := func(action rtesting.Action) (bool, runtime.Object, error) {
		w := &resources.Widget{}
		switch action.GetVerb() {
		case "create":
			if !exists(w) || !slices.Contains(w.Finalizers, ours) {
				t.Error("state is made without a finalizer, want it to be there before")
			}
		case "patch":
			if exists(w) && w.DeletionTimestamp != nil && exists(&corev1.ConfigMap{}) {
				t.Error("the finalizer goes while there is state, want it to go after")
			}
		case "delete":
		default:
			return false, nil, nil
		}
		if writes++; writes > 0 && writes == failing {
			return true, nil, errBoom
		}
		return assignUID(action)
	}
	expect.WithReactors = []rtesting.ReactionFunc{watch}
	config = expect.Config()
	config.APIReader = config.Client
	root := &widgetRoot{SkipStatusUpdate: true, Reconciler: way(&trace{}), Config: config}
	reconcile := func() {
		for range 4 {
			_, _ = root.Reconcile(t.Context(), widgetRequest)
		}
	}
	change := func(obj client.Object, do func() error) {
		t.Helper()
		if !exists(obj) {
			t.Fatalf("there is no %T, want one", obj)
		}
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}

	reconcile()
	// The state takes its time to go.
	child := &corev1.ConfigMap{}
	change(child, func() error {
		child.Finalizers = []string{theirs}
		return config.Update(t.Context(), child)
	})
	writes = -1 // the next delete is the test's own
	w := &resources.Widget{}
	change(w, func() error { return config.Delete(t.Context(), w) })
	reconcile()
	change(child, func() error {
		child.Finalizers = nil
		return config.Update(t.Context(), child)
	})
	reconcile()
	if exists(w) || exists(child) {
		t.Errorf("the widget exists: %t, the child: %t, want both gone", exists(w), exists(child))
	}
}

// Without a finalizer nothing that it should guard is made.
func TestL3NoStateWithoutAFinalizer(t *testing.T) {
	for name, way := range guardedWays() {
		t.Run(name, func(t *testing.T) {
			calls := &trace{}
			expect := expectWidget(steadyWidget)
			expect.WithReactors = []rtesting.ReactionFunc{
				calls.observe,
				rtesting.InduceFailure("patch", "Widget", rtesting.InduceFailureOpts{Error: errBoom}),
			}
			root := &widgetRoot{SkipStatusUpdate: true, Reconciler: way(&trace{}), Config: expect.Config()}
			if _, err := root.Reconcile(t.Context(), widgetRequest); !errors.Is(err, errBoom) {
				t.Errorf("the error is %v, want %v", err, errBoom)
			}
			calls.compare(t, []string{"patch Widget"})
		})
	}
}

// The same input gives the same requests, in the same order.
func TestL8SameInputSameRequests(t *testing.T) {
	story := func() []string {
		calls := &trace{reads: true}
		expect := expectWidget(widget)
		body := func(action rtesting.Action) (bool, runtime.Object, error) {
			switch action := action.(type) {
			case rtesting.PatchAction:
				calls.add("  %s", action.GetPatch())
			case rtesting.UpdateAction:
				data, err := json.Marshal(action.GetObject())
				if err != nil {
					t.Fatal(err)
				}
				calls.add("  %s", data)
			}
			return false, nil, nil
		}
		expect.WithReactors = []rtesting.ReactionFunc{calls.observe, assignUID, body}
		for i := range 20 {
			extra := givenConfigMap.With(func(c *corev1.ConfigMap) {
				c.Name, c.UID = fmt.Sprint("extra-", i), types.UID(fmt.Sprint("extra-", i))
			})
			expect.GivenObjects = append(expect.GivenObjects, extra)
		}
		config := expect.Config()
		config.APIReader = config.Client
		tree := widgetSequence{
			changedChild()(calls),
			&widgetFinalizer{Finalizer: ours, Reconciler: writing(reconcilers.Result{}, nil)},
			guardedShortForm(func(node *configMapNode) { node.Finalizer = theirs }, desires(func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				child.Name = "guarded"
				for i := range 20 {
					child.Labels[fmt.Sprint("label-", i)] = "value"
				}
				return child, nil
			}))(calls),
		}
		root := &widgetRoot{Reconciler: tree, Config: config}
		now := rtime.StashNow(t.Context(), requestTime)
		for range 3 {
			result, err := root.Reconcile(now, widgetRequest)
			calls.add("result %v, %v", result, err)
		}
		if err := config.Client.Delete(t.Context(), widget.Object()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			result, err := root.Reconcile(now, widgetRequest)
			calls.add("result %v, %v", result, err)
		}
		return calls.calls
	}
	first := story()
	for range 5 {
		if diff := cmp.Diff(first, story()); diff != "" {
			t.Fatalf("the second time is another, want the same (-first +second):\n%s", diff)
		}
	}
	if len(first) < 40 {
		t.Errorf("there are %d calls, want at least 40", len(first))
	}
}

// Time is read from the request.
func TestL10TimeIsReadFromTheRequest(t *testing.T) {
	expect := expectWidget(widget)
	later := requestTime.Add(48 * time.Hour)
	var seen []time.Time
	broken := false
	root := &widgetRoot{
		BeforeReconcile: func(ctx context.Context, _ reconcilers.Request) (context.Context, reconcilers.Result, error) {
			seen = append(seen, rtime.RetrieveNow(ctx))
			return nil, reconcilers.Result{}, nil
		},
		Reconciler: widgetSequence{
			&widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
				seen = append(seen, rtime.RetrieveNow(ctx))
				if broken {
					w.Status.MarkChildNotReady(ctx, "Broken", "")
				} else {
					w.Status.MarkChildReady(ctx)
				}
				return nil
			}},
		},
		Config: expect.Config(),
	}
	transitions := func() []time.Time {
		t.Helper()
		w := &resources.Widget{}
		if err := expect.Config().Get(t.Context(), widgetKey, w); err != nil {
			t.Fatal(err)
		}
		var times []time.Time
		for _, condition := range w.Status.Conditions {
			times = append(times, condition.LastTransitionTime.UTC())
		}
		return times
	}
	for _, now := range []time.Time{requestTime, later} {
		seen = nil
		if _, err := root.Reconcile(rtime.StashNow(t.Context(), now), widgetRequest); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(seen, []time.Time{now, now}) {
			t.Errorf("the nodes saw %v, want %v twice", seen, now)
		}
		// The conditions are as they were, so the second request moves none.
		if times := transitions(); !slices.Equal(times, []time.Time{requestTime, requestTime}) {
			t.Errorf("at %v the conditions changed at %v, want %v", now, times, requestTime)
		}
	}
	broken = true
	if _, err := root.Reconcile(rtime.StashNow(t.Context(), later), widgetRequest); err != nil {
		t.Fatal(err)
	}
	if times := transitions(); !slices.Equal(times, []time.Time{later, later}) {
		t.Errorf("the conditions changed at %v, expected %v", times, later)
	}
	seen = nil
	before := time.Now()
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
		t.Fatal(err)
	}
	if seen[0] != seen[1] || seen[0].Before(before) || seen[0].After(time.Now()) {
		t.Errorf("without a pinned time the nodes saw %v, want one time from %v on", seen, before)
	}
}
