package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type (
	widgetAggregate = reconcilers.AggregateReconciler[*resources.Widget]
	widgetManager   = reconcilers.UpdatingObjectManager[*resources.Widget]
)

func mergeWidget(current, desired *resources.Widget) {
	current.Labels = desired.Labels
	current.Spec = desired.Spec
}

// aggregateTest is rootTest for an aggregate. The root needs no Request and no manager of its own.
type aggregateTest struct {
	rtesting.ReconcilerTestCase
	root  func(calls *trace) *widgetAggregate
	calls []string
}

type aggregateTests map[string]aggregateTest

func (tests aggregateTests) run(t *testing.T) {
	t.Helper()
	rows := map[string]rootRow{}
	for name, test := range tests {
		rows[name] = rootRow{test.ReconcilerTestCase, func(calls *trace, c reconcilers.Config) reconcile.Reconciler {
			root := test.root(calls)
			root.Config = c
			root.Request = widgetRequest
			if root.AggregateObjectManager == nil {
				root.MergeBeforeUpdate = mergeWidget
			}
			return root
		}, test.calls}
	}
	runRoots(t, rows)
}

// paints returns a tree that makes the widget blue, and returns what it is given.
func paints(calls *trace, result reconcilers.Result, err error) widgetNode {
	return &widgetSync{SyncWithResult: func(_ context.Context, w *resources.Widget) (reconcilers.Result, error) {
		calls.add("tree %q", w.Spec.Fields["color"])
		w.Spec.Fields = map[string]string{"color": "blue"}
		return result, err
	}}
}

func painted(w *resources.Widget) { w.Spec.Fields = map[string]string{"color": "blue"} }

// unborn is what is created: nothing that a server adds.
func unborn(w *resources.Widget) {
	w.ObjectMeta = metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: w.Labels}
}

func TestAggregateReconciler(t *testing.T) {
	type rtest = rtesting.ReconcilerTestCase
	tree := func(result reconcilers.Result, err error) func(*trace) *widgetAggregate {
		return func(calls *trace) *widgetAggregate { return &widgetAggregate{Reconciler: paints(calls, result, err)} }
	}
	desires := func(desired func(w *resources.Widget) (*resources.Widget, error)) func(*trace) *widgetAggregate {
		return func(calls *trace) *widgetAggregate {
			return &widgetAggregate{
				Reconciler: paints(calls, minute, nil),
				DesiredResource: func(_ context.Context, w *resources.Widget) (*resources.Widget, error) {
					calls.add("desired %q", w.Spec.Fields["color"])
					return desired(w)
				},
			}
		}
	}
	given := []client.Object{widget}
	none := reconcilers.Result{}
	created := []rtesting.Event{normal("Created", `Created Widget "gadget"`)}
	updated := []rtesting.Event{normal("Updated", `Updated Widget "gadget"`)}
	joined := errors.Join(errBoom, reconcilers.ErrHaltSubReconcilers)

	aggregateTests{
		"another request": {
			root: func(calls *trace) *widgetAggregate {
				root := tree(minute, errBoom)(calls)
				root.BeforeReconcile = func(context.Context, reconcilers.Request) (context.Context, reconcilers.Result, error) {
					return nil, minute, errBoom
				}
				return root
			},
			calls:              []string{},
			ReconcilerTestCase: rtest{Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "other", Name: "gadget"}}},
		},
		"cannot be read": {
			root:  tree(minute, nil),
			calls: []string{},
			ReconcilerTestCase: rtest{
				WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("get", "Widget", rtesting.InduceFailureOpts{Error: errBoom})},
				ShouldErr:    true,
				Verify:       returns(errBoom),
			},
		},
		"cannot be read, quietly": {
			root:  tree(minute, nil),
			calls: []string{},
			ReconcilerTestCase: rtest{
				WithReactors:   []rtesting.ReactionFunc{rtesting.InduceFailure("get", "Widget", rtesting.InduceFailureOpts{Error: reconcilers.ErrQuiet})},
				ExpectedResult: requeue,
			},
		},
		"terminating": {
			root:               tree(minute, errBoom),
			calls:              []string{},
			ReconcilerTestCase: rtest{GivenObjects: []client.Object{terminatingWidget}},
		},
		"absent": {
			root:  tree(minute, nil),
			calls: []string{`tree ""`, "create Widget"},
			ReconcilerTestCase: rtest{
				ExpectCreates:  []client.Object{widget.With(unborn, painted)},
				ExpectEvents:   created,
				ExpectedResult: minute,
			},
		},
		"absent, cannot be created": {
			root:  tree(minute, nil),
			calls: []string{`tree ""`, "create Widget"},
			ReconcilerTestCase: rtest{
				WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("create", "Widget", rtesting.InduceFailureOpts{Error: errBoom})},
				ExpectCreates: []client.Object{widget.With(unborn, painted)},
				ExpectEvents:  []rtesting.Event{warning("CreationFailed", `Failed to create Widget "gadget": boom`)},
				ShouldErr:     true,
				Verify:        returnsBoth(errBoom, none),
			},
		},
		// What the tree changed is persisted.
		"changed by the tree": {
			root:  tree(minute, nil),
			calls: []string{`tree ""`, "update Widget"},
			ReconcilerTestCase: rtest{
				GivenObjects:   given,
				ExpectUpdates:  []client.Object{widget.With(painted)},
				ExpectEvents:   updated,
				ExpectedResult: minute,
			},
		},
		"as it should be": {
			root:               tree(minute, nil),
			calls:              []string{`tree "blue"`},
			ReconcilerTestCase: rtest{GivenObjects: []client.Object{widget.With(painted)}, ExpectedResult: minute},
		},
		"the tree fails": {
			root:               tree(minute, errBoom),
			calls:              []string{`tree ""`},
			ReconcilerTestCase: rtest{GivenObjects: given, ShouldErr: true, Verify: returnsBoth(errBoom, none)},
		},
		"the tree fails quietly": {
			root:  tree(minute, fmt.Errorf("not yet: %w", reconcilers.ErrQuiet)),
			calls: []string{`tree ""`},
			ReconcilerTestCase: rtest{
				GivenObjects: given,
				//lint:ignore SA1019 deprecated, not gone
				ExpectedResult: reconcilers.Result{Requeue: true, RequeueAfter: minute.RequeueAfter},
			},
		},
		// A halt is no error: it neither keeps the object as it is, nor brings the request back.
		"the tree halts": {
			root:  tree(none, fmt.Errorf("enough: %w", reconcilers.ErrHaltSubReconcilers)),
			calls: []string{`tree ""`, "update Widget"},
			ReconcilerTestCase: rtest{
				GivenObjects: given, ExpectUpdates: []client.Object{widget.With(painted)}, ExpectEvents: updated,
			},
		},
		"the tree halts, with a result": {
			root:  tree(requeue, reconcilers.ErrHaltSubReconcilers),
			calls: []string{`tree ""`, "update Widget"},
			ReconcilerTestCase: rtest{
				GivenObjects: given, ExpectUpdates: []client.Object{widget.With(painted)}, ExpectEvents: updated, ExpectedResult: requeue,
			},
		},
		// Invariant L6: what is more than a halt is not lost.
		"the tree halts and fails": {
			root:  tree(none, joined),
			calls: []string{`tree ""`, "update Widget"},
			ReconcilerTestCase: rtest{
				GivenObjects: given, ExpectUpdates: []client.Object{widget.With(painted)}, ExpectEvents: updated, ExpectedResult: requeue,
			},
		},
		"the tree fails for good": {
			root:  tree(none, errors.Join(errBoom, reconcilers.ErrDurable)),
			calls: []string{`tree ""`, "update Widget"},
			ReconcilerTestCase: rtest{
				GivenObjects: given, ExpectUpdates: []client.Object{widget.With(painted)}, ExpectEvents: updated,
			},
		},
		"the tree halts, and the update fails": {
			root:  tree(none, joined),
			calls: []string{`tree ""`, "update Widget"},
			ReconcilerTestCase: rtest{
				GivenObjects:  given,
				WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("update", "Widget", rtesting.InduceFailureOpts{Error: statusConflict})},
				ExpectUpdates: []client.Object{widget.With(painted)},
				ExpectEvents:  []rtesting.Event{warning("UpdateFailed", `Failed to update Widget "gadget": `+statusConflict.Error())},
				ShouldErr:     true,
				Verify:        returns(statusConflict),
			},
		},
		"desired otherwise": {
			root: desires(func(w *resources.Widget) (*resources.Widget, error) {
				w.Labels = map[string]string{"desired": "true"}
				return w, nil
			}),
			calls: []string{`tree ""`, `desired "blue"`, "update Widget"},
			ReconcilerTestCase: rtest{
				GivenObjects: given,
				ExpectUpdates: []client.Object{widget.With(painted, func(w *resources.Widget) {
					w.Labels = map[string]string{"desired": "true"}
				})},
				ExpectEvents:   updated,
				ExpectedResult: minute,
			},
		},
		"the tree changes what is not desired": {
			root:               desires(func(*resources.Widget) (*resources.Widget, error) { return widget.Object(), nil }),
			calls:              []string{`tree ""`, `desired "blue"`},
			ReconcilerTestCase: rtest{GivenObjects: given, ExpectedResult: minute},
		},
		"not desired": {
			root:  desires(func(*resources.Widget) (*resources.Widget, error) { return nil, nil }),
			calls: []string{`tree ""`, `desired "blue"`, "delete Widget"},
			ReconcilerTestCase: rtest{
				GivenObjects:   given,
				ExpectDeletes:  []rtesting.DeleteRef{{Group: resources.GroupVersion.Group, Kind: "Widget", Namespace: widgetKey.Namespace, Name: widgetKey.Name}},
				ExpectEvents:   []rtesting.Event{normal("Deleted", `Deleted Widget "gadget"`)},
				ExpectedResult: minute,
			},
		},
		"not desired, absent": {
			root:               desires(func(*resources.Widget) (*resources.Widget, error) { return nil, nil }),
			calls:              []string{`tree ""`, `desired "blue"`},
			ReconcilerTestCase: rtest{ExpectedResult: minute},
		},
		"what is desired is not known": {
			root:               desires(func(w *resources.Widget) (*resources.Widget, error) { return w, errBoom }),
			calls:              []string{`tree ""`, `desired "blue"`},
			ReconcilerTestCase: rtest{GivenObjects: given, ShouldErr: true, Verify: returnsBoth(errBoom, none)},
		},
		"what is desired is not known, quietly": {
			root:  desires(func(w *resources.Widget) (*resources.Widget, error) { return w, reconcilers.ErrQuiet }),
			calls: []string{`tree ""`, `desired "blue"`},
			ReconcilerTestCase: rtest{
				GivenObjects: given,
				//lint:ignore SA1019 deprecated, not gone
				ExpectedResult: reconcilers.Result{Requeue: true, RequeueAfter: minute.RequeueAfter},
			},
		},
		// Invariant L4: what is not the object of the request is not ours.
		"another is desired": {
			root: desires(func(w *resources.Widget) (*resources.Widget, error) {
				w.Name = "another"
				return w, nil
			}),
			calls: []string{`tree ""`, `desired "blue"`},
			ReconcilerTestCase: rtest{GivenObjects: given, ShouldErr: true, Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				checkError(t, "returned,", err, `WidgetAggregateReconciler: AggregateReconciler "WidgetAggregateReconciler" `+
					`must desire Widget default/gadget, not Widget default/another`)
			}},
		},
	}.run(t)
}

func TestAggregateReconcilerHooks(t *testing.T) {
	type rtest = rtesting.ReconcilerTestCase
	type key struct{}
	root := func(before, after error) func(*trace) *widgetAggregate {
		return func(calls *trace) *widgetAggregate {
			return &widgetAggregate{
				BeforeReconcile: func(ctx context.Context, req reconcilers.Request) (context.Context, reconcilers.Result, error) {
					calls.add("before %s", req)
					return context.WithValue(ctx, key{}, "value"), minute, before
				},
				// The delay of before is shorter.
				Reconciler: &widgetSync{SyncWithResult: func(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
					calls.add("tree %v, %v", ctx.Value(key{}), reconcilers.RetrieveRequest(ctx))
					painted(w)
					return twoMinutes, nil
				}},
				AfterReconcile: func(ctx context.Context, _ reconcilers.Request, result reconcilers.Result, err error) (reconcilers.Result, error) {
					calls.add("after %v, %v, %v", ctx.Value(key{}), result.RequeueAfter, err)
					return result, after
				},
			}
		}
	}
	all := []string{"before default/gadget", "tree value, default/gadget", "after value, 1m0s, <nil>"}
	given := []client.Object{widget.With(painted)}
	//lint:ignore SA1019 deprecated, not gone
	soon := reconcilers.Result{Requeue: true, RequeueAfter: minute.RequeueAfter}
	aggregateTests{
		"both": {root: root(nil, nil), calls: all, ReconcilerTestCase: rtest{GivenObjects: given, ExpectedResult: minute}},
		"before fails": {
			root: root(errBoom, nil), calls: all[:1],
			ReconcilerTestCase: rtest{GivenObjects: given, ShouldErr: true, Verify: returnsBoth(errBoom, reconcilers.Result{})},
		},
		"before fails quietly": {
			root: root(reconcilers.ErrQuiet, nil), calls: all[:1],
			ReconcilerTestCase: rtest{GivenObjects: given, ExpectedResult: soon},
		},
		"after fails": {
			root: root(nil, errBoom), calls: all,
			ReconcilerTestCase: rtest{GivenObjects: given, ShouldErr: true, Verify: returnsBoth(errBoom, reconcilers.Result{})},
		},
		"after fails quietly": {
			root: root(nil, reconcilers.ErrQuiet), calls: all,
			ReconcilerTestCase: rtest{GivenObjects: given, ExpectedResult: soon},
		},
		"after drops the error of the tree": {
			root: func(calls *trace) *widgetAggregate {
				return &widgetAggregate{
					Reconciler: paints(calls, nothing, errBoom),
					AfterReconcile: func(
						_ context.Context, _ reconcilers.Request, _ reconcilers.Result, err error,
					) (reconcilers.Result, error) {
						calls.add("after %v", err)
						return twoMinutes, nil
					},
				}
			},
			calls:              []string{`tree "blue"`, "after boom"},
			ReconcilerTestCase: rtest{GivenObjects: given, ExpectedResult: twoMinutes},
		},
		"after, of what is terminating": {
			root: root(nil, nil), calls: []string{all[0], all[2]},
			ReconcilerTestCase: rtest{GivenObjects: []client.Object{terminatingWidget}, ExpectedResult: minute},
		},
	}.run(t)
}
