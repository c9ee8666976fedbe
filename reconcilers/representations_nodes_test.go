package reconcilers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// blueWidget has what the scenarios read.
var blueWidget = widget.With(seenBefore, func(w *resources.Widget) { w.Spec.Fields = map[string]string{"color": "blue"} })

// markedBlue is what marks leaves on blueWidget.
var markedBlue = statusField("mark", "blue")

func (r representation[T]) writesStatus(t *testing.T) {
	writes := func(c rtesting.ReconcilerTestCase) rtesting.ReconcilerTestCase {
		if r.patched {
			patch := finalizersPatch(`{"status":{"fields":{"mark":"blue"}}}`)
			patch.SubResource = "status"
			c.ExpectStatusPatches = []rtesting.PatchRef{patch}
			c.ExpectEvents = []rtesting.Event{normal("StatusPatched", "Patched status")}
			return c
		}
		c.ExpectStatusUpdates = []client.Object{r.of(blueWidget.With(markedBlue).Object())}
		c.ExpectEvents = []rtesting.Event{normal("StatusUpdated", "Updated status")}
		return c
	}
	given := func(objs ...client.Object) rtesting.ReconcilerTestCase {
		return rtesting.ReconcilerTestCase{GivenObjects: objs}
	}
	fails := func(c rtesting.ReconcilerTestCase) rtesting.ReconcilerTestCase { c.ExpectedErr = errBoom; return c }
	steady := given(blueWidget.With(markedBlue))
	steady.ExpectedResult = minute
	written := []string{"sync", "update Widget/status"}
	if r.patched {
		written[1] = "patch Widget/status"
	}
	rows := map[string]rootRow{}
	for name, test := range map[string]struct {
		rtesting.ReconcilerTestCase
		err   error
		calls []string
	}{
		"writes":                 {writes(given(blueWidget)), nil, written},
		"writes beside an error": {fails(writes(given(blueWidget))), errBoom, written},
		"is steady":              {steady, nil, []string{"sync"}},
		"skips the status":       {fails(given(blueWidget)), errors.Join(errBoom, reconcilers.ErrSkipStatusUpdate), []string{"sync"}},
		"terminating":            {given(blueWidget.With(terminating("f.io/f"))), nil, []string{"finalize"}},
		"gone":                   {given(), nil, []string{}},
	} {
		if test.ExpectedErr != nil {
			test.ExpectedErr = test.err
		}
		rows[name] = rootRow{test.ReconcilerTestCase, func(calls *trace, c reconcilers.Config) reconcile.Reconciler {
			return &reconcilers.ResourceReconciler[T]{
				Type: r.empty(), Config: c, Reconciler: r.marks(calls, minute, test.err),
			}
		}, test.calls}
	}
	runRoots(t, rows)
}

func (r representation[T]) hasFinalizer(t *testing.T) {
	node := func(calls *trace) reconcilers.SubReconciler[T] {
		return &reconcilers.WithFinalizer[T]{Finalizer: "f.io/f", Reconciler: &reconcilers.SyncReconciler[T]{
			Sync:     func(context.Context, T) error { calls.add("sync"); return nil },
			Finalize: func(context.Context, T) error { calls.add("finalize"); return nil },
		}}
	}
	patched := []rtesting.Event{normal("FinalizerPatched", `Patched finalizer "f.io/f"`)}
	runNodes(t, map[string]nodeRow[T]{
		"is added first": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource:       r.of(blueWidget.Object()),
				ExpectResource: r.of(blueWidget.With(patchedBy("f.io/f")).Object()),
				ExpectPatches:  finalizersPatches("f.io/f"),
				ExpectEvents:   patched,
			},
			node: node, calls: []string{"patch Widget", "sync"},
		},
		"is there": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource: r.of(blueWidget.With(func(w *resources.Widget) { w.Finalizers = []string{"f.io/f"} }).Object()),
			},
			node: node, calls: []string{"sync"},
		},
		"is cleared last": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource:       r.of(blueWidget.With(terminating("f.io/f", "g.io/g")).Object()),
				ExpectResource: r.of(blueWidget.With(terminating(), patchedBy("g.io/g")).Object()),
				ExpectPatches:  []rtesting.PatchRef{finalizersPatch(`{"metadata":{"finalizers":["g.io/g"],"resourceVersion":"999"}}`)},
				ExpectEvents:   patched,
			},
			node: node, calls: []string{"finalize", "patch Widget"},
		},
	})
}
