package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	// steadyWidget is what a tree that does nothing leaves of widget.
	steadyWidget = widget.With(initialized, observed)

	statusConflict = apierrs.NewConflict(schema.GroupResource{Group: "test.espalier.dev", Resource: "widgets"}, widgetKey.Name, errBoom)
	statusUpdated  = normal("StatusUpdated", "Updated status")
)

func initialized(w *resources.Widget) {
	ctx := rtime.StashNow(context.Background(), requestTime)
	w.Status.InitializeConditions(apis.StashGeneration(ctx, w.Generation))
}

func observed(w *resources.Widget) {
	w.Status.ObservedGeneration = w.Generation
}

// writing returns a tree that changes the status, and returns what it is given.
func writing(result reconcilers.Result, err error) widgetNode {
	return &widgetSync{
		SyncDuringFinalization: true,
		SyncWithResult: func(_ context.Context, w *resources.Widget) (reconcilers.Result, error) {
			w.Status.AddField("tree", "ran")
			return result, err
		},
	}
}

func rootOf(node func(calls *trace) widgetNode) func(*trace) *widgetRoot {
	return func(calls *trace) *widgetRoot { return &widgetRoot{Reconciler: node(calls)} }
}

func failStatusWrite(err error) []rtesting.ReactionFunc {
	return []rtesting.ReactionFunc{
		rtesting.InduceFailure("update", "Widget", rtesting.InduceFailureOpts{Error: err, SubResource: "status"}),
	}
}

func TestResourceReconciler(t *testing.T) {
	type rtest = rtesting.ReconcilerTestCase
	steps := func(result reconcilers.Result, err error) func(*trace) *widgetRoot {
		return rootOf(func(calls *trace) widgetNode { return calls.step("tree", result, err) })
	}
	writes := func(result reconcilers.Result, err error) func(*trace) *widgetRoot {
		return rootOf(func(*trace) widgetNode { return writing(result, err) })
	}
	with := func(root func(*trace) *widgetRoot, change func(*widgetRoot)) func(*trace) *widgetRoot {
		return func(calls *trace) *widgetRoot {
			r := root(calls)
			change(r)
			return r
		}
	}
	steady := []client.Object{steadyWidget}
	written := []client.Object{steadyWidget.With(statusField("tree", "ran"))}
	beingDeleted := steadyWidget.With(terminating(ours))

	rootTests{
		"gone": {root: steps(minute, errBoom), calls: []string{}},
		"cannot be fetched": {
			root:  steps(minute, nil),
			calls: []string{},
			ReconcilerTestCase: rtest{
				GivenObjects: steady,
				WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("get", "Widget", rtesting.InduceFailureOpts{Error: errBoom})},
				ShouldErr:    true,
				Verify:       returns(errBoom),
			},
		},
		"cannot be fetched, quietly": {
			root:  steps(minute, nil),
			calls: []string{},
			ReconcilerTestCase: rtest{
				GivenObjects:   steady,
				WithReactors:   []rtesting.ReactionFunc{rtesting.InduceFailure("get", "Widget", rtesting.InduceFailureOpts{Error: reconcilers.ErrQuiet})},
				ExpectedResult: requeue,
			},
		},
		"steady": {
			root:               steps(minute, nil),
			calls:              []string{"tree"},
			ReconcilerTestCase: rtest{GivenObjects: steady, ExpectedResult: minute},
		},
		"terminating, and the tree removes the last finalizer": {
			root: with(rootOf(func(*trace) widgetNode {
				return &widgetSync{SyncDuringFinalization: true, Sync: func(ctx context.Context, w *resources.Widget) error {
					w.Status.AddField("tree", "ran")
					return reconcilers.ClearFinalizer(ctx, w, ours)
				}}
			}), func(r *widgetRoot) { r.SyncStatusDuringFinalization = true }),
			ReconcilerTestCase: rtest{
				GivenObjects:  []client.Object{beingDeleted},
				ExpectPatches: []rtesting.PatchRef{finalizersPatch(`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`)},
				ExpectEvents:  []rtesting.Event{normal("FinalizerPatched", `Patched finalizer "`+ours+`"`)},
			},
		},
		"terminating, and another finalizer is left": {
			root: with(rootOf(func(*trace) widgetNode {
				return &widgetSync{SyncDuringFinalization: true, Sync: func(ctx context.Context, w *resources.Widget) error {
					w.Status.AddField("tree", "ran")
					return reconcilers.ClearFinalizer(ctx, w, ours)
				}}
			}), func(r *widgetRoot) { r.SyncStatusDuringFinalization = true }),
			ReconcilerTestCase: rtest{
				GivenObjects:        []client.Object{beingDeleted.With(terminating(ours, "theirs.example.com"))},
				ExpectPatches:       []rtesting.PatchRef{finalizersPatch(`{"metadata":{"finalizers":["theirs.example.com"],"resourceVersion":"999"}}`)},
				ExpectStatusUpdates: []client.Object{beingDeleted.With(terminating("theirs.example.com"), statusField("tree", "ran"))},
				ExpectEvents: []rtesting.Event{
					normal("FinalizerPatched", `Patched finalizer "`+ours+`"`), statusUpdated,
				},
			},
		},
		"terminating, and gone when the status is written": {
			root: with(writes(nothing, nil), func(r *widgetRoot) { r.SyncStatusDuringFinalization = true }),
			ReconcilerTestCase: rtest{
				GivenObjects:        []client.Object{beingDeleted},
				WithReactors:        failStatusWrite(apierrs.NewNotFound(schema.GroupResource{}, "gadget")),
				ExpectStatusUpdates: []client.Object{beingDeleted.With(statusField("tree", "ran"))},
			},
		},
		"gone when the status is written": {
			root: writes(nothing, nil),
			ReconcilerTestCase: rtest{
				GivenObjects:        steady,
				WithReactors:        failStatusWrite(apierrs.NewNotFound(schema.GroupResource{}, "gadget")),
				ExpectStatusUpdates: written,
				ExpectEvents:        []rtesting.Event{warning("StatusUpdateFailed", `Failed to update status:  "gadget" not found`)},
				ShouldErr:           true,
			},
		},
		"steady, fails": {
			root:               steps(minute, errBoom),
			calls:              []string{"tree"},
			ReconcilerTestCase: rtest{GivenObjects: steady, ShouldErr: true, Verify: returnsBoth(errBoom, reconcilers.Result{})},
		},
		"steady, fails quietly": {
			root:               steps(reconcilers.Result{}, fmt.Errorf("not yet: %w", reconcilers.ErrQuiet)),
			calls:              []string{"tree"},
			ReconcilerTestCase: rtest{GivenObjects: steady, ExpectedResult: requeue},
		},
		"steady, halts": {
			root:               steps(reconcilers.Result{}, reconcilers.ErrHaltSubReconcilers),
			calls:              []string{"tree"},
			ReconcilerTestCase: rtest{GivenObjects: steady, ExpectedResult: requeue},
		},
		// Invariant L6: the delay of a quiet error is kept.
		"steady, fails quietly, with a delay": {
			root:               steps(minute, reconcilers.ErrQuiet),
			calls:              []string{"tree"},
			ReconcilerTestCase: rtest{GivenObjects: steady, ExpectedResult: minute},
		},
		"conditions are initialised": {
			root:  steps(minute, nil),
			calls: []string{"tree", "update Widget/status"},
			ReconcilerTestCase: rtest{
				GivenObjects:        []client.Object{widget},
				ExpectStatusUpdates: []client.Object{steadyWidget},
				ExpectEvents:        []rtesting.Event{statusUpdated},
			},
		},
		"the generation moves": {
			root:  steps(minute, nil),
			calls: []string{"tree", "update Widget/status"},
			ReconcilerTestCase: rtest{
				GivenObjects:        []client.Object{steadyWidget.With(func(w *resources.Widget) { w.Generation = 2 })},
				ExpectStatusUpdates: []client.Object{steadyWidget.With(func(w *resources.Widget) { w.Generation = 2 }, observed)},
				ExpectEvents:        []rtesting.Event{statusUpdated},
			},
		},
		"the tree changes the status": {
			root: writes(minute, nil),
			ReconcilerTestCase: rtest{
				GivenObjects:        steady,
				ExpectStatusUpdates: written,
				ExpectEvents:        []rtesting.Event{statusUpdated},
			},
		},
		"the tree changes the status and halts": {
			root: writes(reconcilers.Result{}, reconcilers.ErrHaltSubReconcilers),
			ReconcilerTestCase: rtest{
				GivenObjects:        []client.Object{widget},
				ExpectStatusUpdates: written,
				ExpectEvents:        []rtesting.Event{statusUpdated},
			},
		},
		// The error is returned, although the write succeeded. The generation is not observed.
		"the tree changes the status and fails": {
			root: writes(minute, errBoom),
			ReconcilerTestCase: rtest{
				GivenObjects:        []client.Object{widget},
				ExpectStatusUpdates: []client.Object{widget.With(initialized, statusField("tree", "ran"))},
				ExpectEvents:        []rtesting.Event{statusUpdated},
				ShouldErr:           true,
				Verify:              returns(errBoom),
			},
		},
		// Where the vocabulary comes from, the delay is dropped here too. Invariant L6 has one exception, and this is not it.
		"the tree changes the status, which conflicts": {
			root: writes(minute, nil),
			ReconcilerTestCase: rtest{
				GivenObjects:        steady,
				WithReactors:        failStatusWrite(statusConflict),
				ExpectStatusUpdates: written,
				ExpectedResult:      minute,
			},
		},
		"the tree changes the status, which cannot be written": {
			root: writes(minute, nil),
			ReconcilerTestCase: rtest{
				GivenObjects:        steady,
				WithReactors:        failStatusWrite(errBoom),
				ExpectStatusUpdates: written,
				ExpectEvents:        []rtesting.Event{warning("StatusUpdateFailed", "Failed to update status: boom")},
				ShouldErr:           true,
				Verify:              returnsBoth(errBoom, reconcilers.Result{}),
			},
		},
		"the tree changes the status, which cannot be written, quietly": {
			root: writes(minute, nil),
			ReconcilerTestCase: rtest{
				GivenObjects:        steady,
				WithReactors:        failStatusWrite(fmt.Errorf("%w: %w", errBoom, reconcilers.ErrQuiet)),
				ExpectStatusUpdates: written,
				// A failure is tried again with back-off, whether or not it is silent, and then asks for the delay again.
				ExpectedResult: requeue,
			},
		},
		"the tree changes the status and skips its update": {
			root: writes(minute, fmt.Errorf("wait: %w", reconcilers.ErrSkipStatusUpdate)),
			ReconcilerTestCase: rtest{
				GivenObjects: []client.Object{widget},
				ShouldErr:    true,
				Verify:       returnsBoth(reconcilers.ErrSkipStatusUpdate, reconcilers.Result{}),
			},
		},
		"the tree changes the status and skips its update quietly": {
			root: writes(reconcilers.Result{}, errors.Join(reconcilers.ErrSkipStatusUpdate, reconcilers.ErrQuiet)),
			ReconcilerTestCase: rtest{
				GivenObjects:   []client.Object{widget},
				ExpectedResult: requeue,
			},
		},
		"the tree changes more than the status": {
			root: rootOf(func(*trace) widgetNode {
				return &widgetSync{Sync: func(_ context.Context, w *resources.Widget) error {
					w.Labels = map[string]string{"a": "b"}
					w.Spec.Fields = map[string]string{"a": "b"}
					return nil
				}}
			}),
			ReconcilerTestCase: rtest{GivenObjects: steady},
		},
		"a condition goes back and forth": {
			root: rootOf(func(*trace) widgetNode {
				return &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
					w.Status.MarkChildNotReady(ctx, "Failed", "")
					w.Status.MarkChildReady(ctx)
					return nil
				}}
			}),
			ReconcilerTestCase: rtest{
				Now: requestTime.Add(time.Hour),
				GivenObjects: []client.Object{steadyWidget.With(func(w *resources.Widget) {
					ctx := apis.StashGeneration(rtime.StashNow(context.Background(), requestTime), w.Generation)
					w.Status.MarkChildReady(ctx)
				})},
			},
		},
		"SkipStatusUpdate": {
			root: with(writes(minute, nil), func(r *widgetRoot) { r.SkipStatusUpdate = true }),
			ReconcilerTestCase: rtest{
				GivenObjects:   []client.Object{widget},
				ExpectedResult: minute,
			},
		},
		"terminating": {
			root:               writes(minute, nil),
			ReconcilerTestCase: rtest{GivenObjects: []client.Object{beingDeleted}, ExpectedResult: minute},
		},
		"terminating, SyncStatusDuringFinalization": {
			root: with(writes(minute, nil), func(r *widgetRoot) { r.SyncStatusDuringFinalization = true }),
			ReconcilerTestCase: rtest{
				GivenObjects:        []client.Object{beingDeleted},
				ExpectStatusUpdates: []client.Object{beingDeleted.With(statusField("tree", "ran"))},
				ExpectEvents:        []rtesting.Event{statusUpdated},
			},
		},
		"SkipRequest": {
			root: with(steps(minute, errBoom), func(r *widgetRoot) {
				r.SkipRequest = func(_ context.Context, req reconcilers.Request) bool { return req == widgetRequest }
				r.BeforeReconcile = func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
					return nil, minute, errBoom
				}
				r.AfterReconcile = func(context.Context, reconcilers.Request, reconcilers.Result, error) (reconcilers.Result, error) {
					return minute, errBoom
				}
			}),
			calls:              []string{},
			ReconcilerTestCase: rtest{GivenObjects: []client.Object{widget}},
		},
		"SkipResource": {
			root: with(steps(minute, errBoom), func(r *widgetRoot) {
				r.SkipResource = func(_ context.Context, w *resources.Widget) bool { return w.Name == widgetKey.Name }
			}),
			calls:              []string{},
			ReconcilerTestCase: rtest{GivenObjects: []client.Object{widget}},
		},
		"not skipped": {
			root: with(steps(minute, nil), func(r *widgetRoot) {
				r.SkipRequest = func(context.Context, reconcilers.Request) bool { return false }
				r.SkipResource = func(context.Context, *resources.Widget) bool { return false }
			}),
			calls:              []string{"tree"},
			ReconcilerTestCase: rtest{GivenObjects: steady, ExpectedResult: minute},
		},
	}.run(t)
}

// The fake client takes no terminating object without finalizers, so a real one of that kind is made up on the way.
func TestResourceReconcilerLeavesAloneWhatNothingHolds(t *testing.T) {
	c := expectWidget(steadyWidget.With(terminating(ours)))
	config := c.Config()
	config.Client = changedReads{config.Client, func(obj client.Object) { obj.SetFinalizers(nil) }}
	root := &widgetRoot{Reconciler: (&trace{}).step("tree", minute, errBoom), Config: config}
	result, err := root.Reconcile(t.Context(), widgetRequest)
	if result != (reconcilers.Result{}) || err != nil {
		t.Errorf("it returned %v and %v, want neither", result, err)
	}
	c.AssertExpectations(t)
}

// changedReads is a client that changes what it has got.
type changedReads struct {
	client.Client
	change func(client.Object)
}

func (c changedReads) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, obj, opts...)
	c.change(obj)
	return err
}

func TestResourceReconcilerValidate(t *testing.T) {
	validationTests{
		"empty": {node: &widgetRoot{}, shallow: `ResourceReconciler "WidgetResourceReconciler" must define Reconciler`},
		"named": {node: &widgetRoot{Name: "mine"}, shallow: `ResourceReconciler "mine" must define Reconciler`},
		"valid": {node: &widgetRoot{Reconciler: widgetSequence{}}},
		"a bad node": {
			node: &widgetRoot{Reconciler: widgetSequence{&widgetSync{}}},
			recursive: `ResourceReconciler "WidgetResourceReconciler" must have a valid Reconciler: ` +
				`Sequence must have a valid Sequence[0]: SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`,
		},
	}.run(t)
}
