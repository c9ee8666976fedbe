package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	ours   = "test.espalier.dev/ours"
	theirs = "test.espalier.dev/other"
)

func TestWithFinalizer(t *testing.T) {
	node := func(err error) func(*trace) widgetNode {
		return func(calls *trace) widgetNode {
			return &widgetFinalizer{
				Finalizer: ours,
				ReadyToClearFinalizer: func(context.Context, *resources.Widget) bool {
					calls.add("ready?")
					return true
				},
				Reconciler: calls.step("nested", minute, err),
			}
		}
	}
	notReady := func(calls *trace) widgetNode {
		n := node(nil)(calls).(*widgetFinalizer)
		n.ReadyToClearFinalizer = func(context.Context, *resources.Widget) bool {
			calls.add("not ready")
			return false
		}
		return n
	}
	add := finalizersPatch(`{"metadata":{"finalizers":["` + ours + `"],"resourceVersion":"999"}}`)
	remove := finalizersPatch(`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`)
	patched := normal("FinalizerPatched", `Patched finalizer "`+ours+`"`)
	beingDeleted := widget.With(terminating(ours))
	failPatch := []rtesting.ReactionFunc{rtesting.InduceFailure("patch", "Widget", rtesting.InduceFailureOpts{Error: errBoom})}
	failed := warning("FinalizerPatchFailed", `Failed to patch finalizer "`+ours+`": boom`)

	nodeTests{
		"living, without it": {
			node:  node(nil),
			calls: []string{"patch Widget", "nested"},
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy(ours)).Object(),
				ExpectPatches:  []rtesting.PatchRef{add},
				ExpectEvents:   []rtesting.Event{patched},
				ExpectedResult: minute,
			},
		},
		"living, with another's": {
			node:  node(nil),
			calls: []string{"patch Widget", "nested"},
			widgetCase: widgetCase{
				Resource:       widget.With(func(w *resources.Widget) { w.Finalizers = []string{theirs} }).Object(),
				ExpectResource: widget.With(patchedBy(theirs, ours)).Object(),
				ExpectPatches: []rtesting.PatchRef{
					finalizersPatch(`{"metadata":{"finalizers":["` + theirs + `","` + ours + `"],"resourceVersion":"999"}}`),
				},
				ExpectEvents:   []rtesting.Event{patched},
				ExpectedResult: minute,
			},
		},
		"living, with it": {
			node:  node(nil),
			calls: []string{"nested"},
			widgetCase: widgetCase{
				Resource:       widget.With(func(w *resources.Widget) { w.Finalizers = []string{ours} }).Object(),
				ExpectedResult: minute,
			},
		},
		"living, it cannot be put on": {
			node:  node(nil),
			calls: []string{"patch Widget"},
			widgetCase: widgetCase{
				WithReactors:  failPatch,
				ExpectPatches: []rtesting.PatchRef{add},
				ExpectEvents:  []rtesting.Event{failed},
				ShouldErr:     true,
				Verify:        returnsBoth(errBoom, reconcilers.Result{}),
			},
		},
		"living, the nested node fails": {
			node:  node(errBoom),
			calls: []string{"patch Widget", "nested"},
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy(ours)).Object(),
				ExpectPatches:  []rtesting.PatchRef{add},
				ExpectEvents:   []rtesting.Event{patched},
				ShouldErr:      true,
				Verify:         returnsBoth(errBoom, minute),
			},
		},
		"terminating": {
			node:  node(nil),
			calls: []string{"nested", "ready?", "patch Widget"},
			widgetCase: widgetCase{
				Resource:       beingDeleted.Object(),
				ExpectResource: beingDeleted.With(patchedBy()).Object(),
				ExpectPatches:  []rtesting.PatchRef{remove},
				ExpectEvents:   []rtesting.Event{patched},
				ExpectedResult: minute,
			},
		},
		"terminating, with another's": {
			node:  node(nil),
			calls: []string{"nested", "ready?", "patch Widget"},
			widgetCase: widgetCase{
				Resource:       widget.With(terminating(ours, theirs)).Object(),
				ExpectResource: beingDeleted.With(patchedBy(theirs)).Object(),
				ExpectPatches:  []rtesting.PatchRef{finalizersPatch(`{"metadata":{"finalizers":["` + theirs + `"],"resourceVersion":"999"}}`)},
				ExpectEvents:   []rtesting.Event{patched},
				ExpectedResult: minute,
			},
		},
		"terminating, without it": {
			node:       node(nil),
			calls:      []string{"nested", "ready?"},
			widgetCase: widgetCase{Resource: terminatingWidget.Object(), ExpectedResult: minute},
		},
		"terminating, ready by default": {
			node: func(calls *trace) widgetNode {
				return &widgetFinalizer{Finalizer: ours, Reconciler: calls.step("nested", minute, nil)}
			},
			calls: []string{"nested", "patch Widget"},
			widgetCase: widgetCase{
				Resource:       beingDeleted.Object(),
				ExpectResource: beingDeleted.With(patchedBy()).Object(),
				ExpectPatches:  []rtesting.PatchRef{remove},
				ExpectEvents:   []rtesting.Event{patched},
				ExpectedResult: minute,
			},
		},
		"terminating, not ready": {
			node:       notReady,
			calls:      []string{"nested", "not ready"},
			widgetCase: widgetCase{Resource: beingDeleted.Object(), ExpectedResult: minute},
		},
		"terminating, the nested node fails": {
			node:       node(errBoom),
			calls:      []string{"nested"},
			widgetCase: widgetCase{Resource: beingDeleted.Object(), ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
		"terminating, the nested node waits": {
			node:       node(reconcilers.ErrQuiet),
			calls:      []string{"nested"},
			widgetCase: widgetCase{Resource: beingDeleted.Object(), ShouldErr: true, Verify: returnsBoth(reconcilers.ErrQuiet, minute)},
		},
		// A halt is no failure, so it must not keep the resource forever. It still halts what comes after.
		"terminating, the nested node halts": {
			node:  node(reconcilers.ErrHaltSubReconcilers),
			calls: []string{"nested", "ready?", "patch Widget"},
			widgetCase: widgetCase{
				Resource:       beingDeleted.Object(),
				ExpectResource: beingDeleted.With(patchedBy()).Object(),
				ExpectPatches:  []rtesting.PatchRef{remove},
				ExpectEvents:   []rtesting.Event{patched},
				ShouldErr:      true,
				Verify:         returnsBoth(reconcilers.ErrHaltSubReconcilers, minute),
			},
		},
		"terminating, the nested node halts and says why": {
			node:  node(fmt.Errorf("nothing left to do: %w", reconcilers.ErrHaltSubReconcilers)),
			calls: []string{"nested", "ready?", "patch Widget"},
			widgetCase: widgetCase{
				Resource:       beingDeleted.Object(),
				ExpectResource: beingDeleted.With(patchedBy()).Object(),
				ExpectPatches:  []rtesting.PatchRef{remove},
				ExpectEvents:   []rtesting.Event{patched},
				ShouldErr:      true,
				Verify:         returnsBoth(reconcilers.ErrHaltSubReconcilers, minute),
			},
		},
		// A failure that halts, or was made durable and so halts too, is a failure still: what was to be cleaned up is there
		// (invariant L3).
		"terminating, the nested node fails and halts": {
			node:       node(errors.Join(errBoom, reconcilers.ErrHaltSubReconcilers)),
			calls:      []string{"nested"},
			widgetCase: widgetCase{Resource: beingDeleted.Object(), ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
		"terminating, the nested node gives up": {
			node:       node(reconcilers.ErrDurable),
			calls:      []string{"nested"},
			widgetCase: widgetCase{Resource: beingDeleted.Object(), ShouldErr: true, Verify: returnsBoth(reconcilers.ErrDurable, minute)},
		},
		"terminating, the nested node fails for good": {
			node:       node(errors.Join(errBoom, reconcilers.ErrDurable)),
			calls:      []string{"nested"},
			widgetCase: widgetCase{Resource: beingDeleted.Object(), ShouldErr: true, Verify: returnsBoth(errBoom, minute)},
		},
		"terminating, it cannot be taken off": {
			node:  node(nil),
			calls: []string{"nested", "ready?", "patch Widget"},
			widgetCase: widgetCase{
				Resource:      beingDeleted.Object(),
				WithReactors:  failPatch,
				ExpectPatches: []rtesting.PatchRef{remove},
				ExpectEvents:  []rtesting.Event{failed},
				ShouldErr:     true,
				Verify:        returnsBoth(errBoom, minute),
			},
		},
		"nested, the outer one is put on first": {
			node: func(calls *trace) widgetNode {
				return &widgetFinalizer{Finalizer: theirs, Reconciler: node(nil)(calls)}
			},
			calls: []string{"patch Widget", "patch Widget", "nested"},
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy(theirs, ours)).Object(),
				ExpectPatches: []rtesting.PatchRef{
					finalizersPatch(`{"metadata":{"finalizers":["` + theirs + `"],"resourceVersion":"999"}}`),
					finalizersPatch(`{"metadata":{"finalizers":["` + theirs + `","` + ours + `"],"resourceVersion":"1000"}}`),
				},
				ExpectEvents:   []rtesting.Event{normal("FinalizerPatched", `Patched finalizer "`+theirs+`"`), patched},
				ExpectedResult: minute,
			},
		},
		"nested, the outer one is taken off last": {
			node: func(calls *trace) widgetNode {
				return &widgetFinalizer{Finalizer: theirs, Reconciler: node(nil)(calls)}
			},
			calls: []string{"nested", "ready?", "patch Widget", "patch Widget"},
			widgetCase: widgetCase{
				Resource:       widget.With(terminating(theirs, ours)).Object(),
				ExpectResource: beingDeleted.With(patchedBy()).Object(),
				ExpectPatches: []rtesting.PatchRef{
					finalizersPatch(`{"metadata":{"finalizers":["` + theirs + `"],"resourceVersion":"999"}}`),
					finalizersPatch(`{"metadata":{"finalizers":null,"resourceVersion":"1000"}}`),
				},
				ExpectEvents:   []rtesting.Event{patched, normal("FinalizerPatched", `Patched finalizer "`+theirs+`"`)},
				ExpectedResult: minute,
			},
		},
	}.run(t)
}

func TestWithFinalizerValidate(t *testing.T) {
	valid := &widgetSync{Sync: func(context.Context, *resources.Widget) error { return nil }}
	validationTests{
		"empty":         {node: &widgetFinalizer{}, shallow: `WithFinalizer "WithFinalizer" must define Finalizer`},
		"valid":         {node: &widgetFinalizer{Finalizer: ours, Reconciler: valid}},
		"no Finalizer":  {node: &widgetFinalizer{Name: "mine", Reconciler: valid}, shallow: `WithFinalizer "mine" must define Finalizer`},
		"no Reconciler": {node: &widgetFinalizer{Finalizer: ours}, shallow: `WithFinalizer "WithFinalizer" must define Reconciler`},
		"bad Reconciler": {
			node: &widgetFinalizer{Finalizer: ours, Reconciler: widgetSequence{&widgetSync{}}},
			recursive: `WithFinalizer "WithFinalizer" must have a valid Reconciler: Sequence must have a valid Sequence[0]: ` +
				`SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`,
		},
	}.run(t)
}

func TestAddAndClearFinalizer(t *testing.T) {
	conflict := apierrs.NewConflict(schema.GroupResource{Group: "test.espalier.dev", Resource: "widgets"}, widgetKey.Name, errBoom)
	quiet := fmt.Errorf("%w: %w", errBoom, reconcilers.ErrQuiet)
	helper := func(do func(context.Context, client.Object, string) error, finalizer string) func(*trace) widgetNode {
		return func(*trace) widgetNode {
			return &widgetSync{
				SyncDuringFinalization: true,
				Sync:                   func(ctx context.Context, w *resources.Widget) error { return do(ctx, w, finalizer) },
			}
		}
	}
	with := func(finalizers ...string) func(*resources.Widget) {
		return func(w *resources.Widget) { w.Finalizers = finalizers }
	}
	fails := func(err error) []rtesting.ReactionFunc {
		return []rtesting.ReactionFunc{rtesting.InduceFailure("patch", "Widget", rtesting.InduceFailureOpts{Error: err})}
	}
	add := finalizersPatch(`{"metadata":{"finalizers":["` + ours + `"],"resourceVersion":"999"}}`)
	patched := normal("FinalizerPatched", `Patched finalizer "`+ours+`"`)
	nodeTests{
		"add": {
			node: helper(reconcilers.AddFinalizer, ours),
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy(ours)).Object(),
				ExpectPatches:  []rtesting.PatchRef{add},
				ExpectEvents:   []rtesting.Event{patched},
			},
		},
		"add nothing": {node: helper(reconcilers.AddFinalizer, ""), calls: []string{}},
		"add what is there": {
			node:       helper(reconcilers.AddFinalizer, ours),
			calls:      []string{},
			widgetCase: widgetCase{Resource: widget.With(with(theirs, ours)).Object()},
		},
		"clear nothing": {node: helper(reconcilers.ClearFinalizer, ""), calls: []string{}},
		"clear what is gone": {
			node:       helper(reconcilers.ClearFinalizer, ours),
			calls:      []string{},
			widgetCase: widgetCase{Resource: widget.With(with(theirs)).Object()},
		},
		"clear of one living": {
			node: helper(reconcilers.ClearFinalizer, ours),
			widgetCase: widgetCase{
				Resource:       widget.With(with(ours)).Object(),
				ExpectResource: widget.With(patchedBy()).Object(),
				ExpectPatches:  finalizersPatches(),
				ExpectEvents:   []rtesting.Event{patched},
			},
		},
		// The cache does not show that the resource is gone.
		"clear of one that is gone": {
			node: helper(reconcilers.ClearFinalizer, ours),
			widgetCase: widgetCase{
				Resource:       terminatingWidget.With(with(ours)).Object(),
				WithReactors:   fails(apierrs.NewNotFound(schema.GroupResource{Resource: "widgets"}, widgetKey.Name)),
				ExpectResource: terminatingWidget.With(with()).Object(),
				ExpectPatches:  finalizersPatches(),
			},
		},
		"conflict": {
			node: helper(reconcilers.AddFinalizer, ours),
			widgetCase: widgetCase{
				WithReactors:  fails(conflict),
				ExpectPatches: []rtesting.PatchRef{add},
				ExpectEvents:  []rtesting.Event{warning("FinalizerPatchFailed", `Failed to patch finalizer "`+ours+`": `+conflict.Error())},
				ShouldErr:     true,
				Verify:        returns(conflict),
			},
		},
		"quiet error": {
			node: helper(reconcilers.AddFinalizer, ours),
			widgetCase: widgetCase{
				WithReactors:  fails(quiet),
				ExpectPatches: []rtesting.PatchRef{add},
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		// The patch is about the finalizers alone. It leaves other changes in memory as they are.
		"other changes stay in memory": {
			node: func(*trace) widgetNode {
				return &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
					w.Status.AddField("a", "changed")
					w.Labels = map[string]string{"b": "changed"}
					return reconcilers.AddFinalizer(ctx, w, ours)
				}}
			},
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy(ours), statusField("a", "changed"), func(w *resources.Widget) {
					w.Labels = map[string]string{"b": "changed"}
				}).Object(),
				ExpectPatches: []rtesting.PatchRef{add},
				ExpectEvents:  []rtesting.Event{normal("FinalizerPatched", `Patched finalizer "`+ours+`"`)},
			},
		},
	}.run(t)
}

// generating is a client whose server raises the generation with each patch.
type generating struct{ client.Client }

func (g generating) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	err := g.Client.Patch(ctx, obj, patch, opts...)
	obj.SetGeneration(obj.GetGeneration() + 1)
	return err
}

func TestAddFinalizerTakesOverTheGeneration(t *testing.T) {
	config := expectWidget(widget).Config()
	config.Client = generating{config.Client}
	w := &resources.Widget{}
	if err := config.Get(t.Context(), widgetKey, w); err != nil {
		t.Fatal(err)
	}
	if err := reconcilers.AddFinalizer(testContext(t, config), w, ours); err != nil || w.Generation != 2 {
		t.Errorf("the generation is %d, returned %v, want 2 and no error", w.Generation, err)
	}
}
