package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			calls := &trace{}
			test.Name = name
			if test.Request.Name == "" {
				test.Request = widgetRequest
			}
			test.WithReactors = append([]rtesting.ReactionFunc{calls.observe}, test.WithReactors...)
			test.ReconcilerTestCase.Run(t, widgetScheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
				root := test.root(calls)
				root.Config = c
				root.Request = widgetRequest
				if root.AggregateObjectManager == nil {
					root.MergeBeforeUpdate = mergeWidget
				}
				return root
			})
			calls.compare(t, test.calls)
		})
	}
}

// paints returns a tree that makes the widget blue, and returns what it is told.
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
		// Issue 1.10: what the tree changed is persisted.
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
		// Law L6: what is more than a halt is not lost.
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
		"what is desired cannot be told": {
			root:               desires(func(w *resources.Widget) (*resources.Widget, error) { return w, errBoom }),
			calls:              []string{`tree ""`, `desired "blue"`},
			ReconcilerTestCase: rtest{GivenObjects: given, ShouldErr: true, Verify: returnsBoth(errBoom, none)},
		},
		"what is desired cannot be told, quietly": {
			root:  desires(func(w *resources.Widget) (*resources.Widget, error) { return w, reconcilers.ErrQuiet }),
			calls: []string{`tree ""`, `desired "blue"`},
			ReconcilerTestCase: rtest{
				GivenObjects: given,
				//lint:ignore SA1019 deprecated, not gone
				ExpectedResult: reconcilers.Result{Requeue: true, RequeueAfter: minute.RequeueAfter},
			},
		},
		// Law L4: what is not the object of the request is not ours.
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
				Reconciler: &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
					calls.add("tree %v, %v", ctx.Value(key{}), reconcilers.RetrieveRequest(ctx))
					painted(w)
					return nil
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
		"after, of what is terminating": {
			root: root(nil, nil), calls: []string{all[0], all[2]},
			ReconcilerTestCase: rtest{GivenObjects: []client.Object{terminatingWidget}, ExpectedResult: minute},
		},
	}.run(t)
}

func TestAggregateReconcilerValidate(t *testing.T) {
	merge := mergeWidget
	validationTests{
		"empty": {node: &widgetAggregate{}, shallow: `AggregateReconciler "WidgetAggregateReconciler" must define Request`},
		"without a name": {
			node:    &widgetAggregate{Name: "mine", Request: reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default"}}, MergeBeforeUpdate: merge},
			shallow: `AggregateReconciler "mine" must define Request`,
		},
		"without a manager": {
			node:    &widgetAggregate{Request: widgetRequest},
			shallow: `AggregateReconciler "WidgetAggregateReconciler" must define AggregateObjectManager`,
		},
		"with a nil manager": {
			node:    &widgetAggregate{Request: widgetRequest, AggregateObjectManager: (*widgetManager)(nil)},
			shallow: `AggregateReconciler "WidgetAggregateReconciler" must define AggregateObjectManager`,
		},
		"with Sanitize only": {
			node:    &widgetAggregate{Request: widgetRequest, Sanitize: func(*resources.Widget) any { return nil }},
			shallow: `AggregateReconciler "WidgetAggregateReconciler" must define AggregateObjectManager`,
		},
		"short form": {node: &widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: merge}},
		// Compatibility pins that the manager is not validated with the tree.
		"with an empty manager": {node: &widgetAggregate{Request: widgetRequest, AggregateObjectManager: &widgetManager{}}},
		"with both forms": {
			node:    &widgetAggregate{Request: widgetRequest, AggregateObjectManager: &widgetManager{}, MergeBeforeUpdate: merge},
			shallow: `AggregateReconciler "WidgetAggregateReconciler" may not define both AggregateObjectManager and MergeBeforeUpdate or Sanitize`,
		},
		"with a manager and Sanitize": {
			node:    &widgetAggregate{Request: widgetRequest, AggregateObjectManager: &widgetManager{}, Sanitize: func(*resources.Widget) any { return nil }},
			shallow: `AggregateReconciler "WidgetAggregateReconciler" may not define both AggregateObjectManager and MergeBeforeUpdate or Sanitize`,
		},
		"a nil tree": {
			node:    &widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: merge, Reconciler: (*widgetSync)(nil)},
			shallow: `AggregateReconciler "WidgetAggregateReconciler" must have a valid Reconciler: must not be nil`,
		},
		"a bad node": {
			node: &widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: merge, Reconciler: widgetSequence{&widgetSync{}}},
			recursive: `AggregateReconciler "WidgetAggregateReconciler" must have a valid Reconciler: ` +
				`Sequence must have a valid Sequence[0]: SyncReconciler "SyncReconciler" must implement Sync or SyncWithResult`,
		},
		"no type": {
			node:    &reconcilers.AggregateReconciler[client.Object]{Name: "mine", Request: widgetRequest, MergeBeforeUpdate: func(_, _ client.Object) {}},
			shallow: `AggregateReconciler "mine" must define Type since none can be made of ` + reflect.TypeFor[client.Object]().String(),
		},
		"no kind": {
			node: &reconcilers.AggregateReconciler[*unstructured.Unstructured]{
				Name: "mine", Request: widgetRequest, MergeBeforeUpdate: func(_, _ *unstructured.Unstructured) {},
			},
			shallow: `AggregateReconciler "mine" must define Type with apiVersion and kind since it is unstructured`,
		},
	}.run(t)
	if _, err := (&widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: merge}).Reconcile(t.Context(), widgetRequest); err == nil {
		t.Error("reconciles without a config")
	} else {
		checkError(t, "without a config", err, `AggregateReconciler "WidgetAggregateReconciler" must define Config to reconcile`)
	}
	_, err := (&widgetAggregate{}).Reconcile(t.Context(), widgetRequest)
	checkError(t, "empty,", err, `AggregateReconciler "WidgetAggregateReconciler" must define Request`)
}

// Issue 4.4: set-up validates the whole tree, and the object manager too.
func TestAggregateReconcilerSetupValidatesTheTree(t *testing.T) {
	config := expectWidget().Config()
	root := &widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: mergeWidget, Reconciler: widgetSequence{&widgetSync{Name: "bad"}}, Config: config}
	checkError(t, "set-up", root.SetupWithManager(t.Context(), nil), `AggregateReconciler "WidgetAggregateReconciler" must have a valid Reconciler: `+
		`Sequence must have a valid Sequence[0]: SyncReconciler "bad" must implement Sync or SyncWithResult`)
	root = &widgetAggregate{Request: widgetRequest, AggregateObjectManager: &widgetManager{Name: "bad"}, Config: config}
	checkError(t, "set-up", root.SetupWithManager(t.Context(), nil), `AggregateReconciler "WidgetAggregateReconciler" must have a valid AggregateObjectManager: `+
		`UpdatingObjectManager "bad" must define MergeBeforeUpdate`)
}

// recordingManager records what it is given.
type recordingManager struct {
	calls                     *trace
	config, original          reconcilers.Config
	resource, actual, desired *resources.Widget
}

func (m *recordingManager) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	m.calls.add("set up manager")
	return nil
}

func (m *recordingManager) Manage(ctx context.Context, resource client.Object, actual, desired *resources.Widget) (*resources.Widget, error) {
	m.calls.add("manage")
	m.config, m.original = reconcilers.RetrieveConfigOrDie(ctx), reconcilers.RetrieveOriginalConfigOrDie(ctx)
	m.resource, m.actual, m.desired = resource.(*resources.Widget), actual, desired
	return actual, m.config.Tracker.TrackObject(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "managed"}}, resource)
}

// Issues 1.10 and 1.13: the manager gets the object as it was read and as it should be, and a config that lacks nothing, whose
// tracks go nowhere. The tracks of the tree and of DesiredResource count.
func TestAggregateReconcilerAndItsManager(t *testing.T) {
	expect := expectWidget(widget)
	for _, name := range []string{"tree", "desired"} {
		expect.ExpectTracks = append(expect.ExpectTracks, rtesting.CreateTrackRequest("", "ConfigMap", "default", name).By("default", "gadget"))
	}
	config := expect.Config()
	track := func(ctx context.Context, name string) error {
		err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, types.NamespacedName{Namespace: "default", Name: name}, &corev1.ConfigMap{})
		return client.IgnoreNotFound(err)
	}
	manager := &recordingManager{calls: &trace{}}
	root := &widgetAggregate{
		Request: widgetRequest,
		Reconciler: &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
			painted(w)
			return track(ctx, "tree")
		}},
		DesiredResource: func(ctx context.Context, w *resources.Widget) (*resources.Widget, error) {
			w.Labels = map[string]string{"desired": "true"}
			return w, track(ctx, "desired")
		},
		AggregateObjectManager: manager,
		Config:                 config,
	}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
		t.Fatal(err)
	}
	expect.AssertExpectations(t)
	if manager.original != config {
		t.Error("the original config is another")
	}
	if manager.config.Tracker == config.Tracker {
		t.Error("the tracker is that of the root")
	}
	given, shown := reflect.ValueOf(config), reflect.ValueOf(manager.config)
	for i := range given.NumField() {
		field := given.Type().Field(i)
		if field.Name != "Tracker" && field.IsExported() && !shown.Field(i).Equal(given.Field(i)) {
			t.Errorf("%s is another", field.Name)
		}
	}
	if fields := manager.actual.Spec.Fields; fields != nil {
		t.Errorf("the tree changed the actual object: %v", fields)
	}
	if manager.resource.Spec.Fields["color"] != "blue" || len(manager.resource.Labels) > 0 {
		t.Errorf("the resource is not as the tree left it: %+v", manager.resource)
	}
	if manager.desired.Spec.Fields["color"] != "blue" || manager.desired.Labels["desired"] != "true" {
		t.Errorf("desired is %+v", manager.desired)
	}
}

// Errors tell where they came up, be it the tree, DesiredResource or the manager.
func TestAggregateReconcilerLocatesErrors(t *testing.T) {
	failing := func(verb string) reconcilers.Config {
		expect := expectWidget(widget)
		expect.WithReactors = []rtesting.ReactionFunc{rtesting.InduceFailure(verb, "Widget", rtesting.InduceFailureOpts{Error: errBoom})}
		return expect.Config()
	}
	fails := func(context.Context, *resources.Widget) error { return errBoom }
	for name, test := range map[string]struct {
		root  *widgetAggregate
		verb  string
		found string
	}{
		"tree": {
			root:  &widgetAggregate{Reconciler: widgetSequence{&widgetSync{Name: "mine", Sync: fails}}},
			found: "WidgetAggregateReconciler/0/mine: boom",
		},
		"desired": {
			root: &widgetAggregate{DesiredResource: func(context.Context, *resources.Widget) (*resources.Widget, error) {
				return nil, errBoom
			}},
			found: "WidgetAggregateReconciler: boom",
		},
		"manager": {
			root:  &widgetAggregate{Reconciler: paints(&trace{}, minute, nil)},
			verb:  "update",
			found: "WidgetAggregateReconciler: Widget default/gadget: boom",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.root.Request, test.root.MergeBeforeUpdate, test.root.Config = widgetRequest, mergeWidget, failing(test.verb)
			_, err := test.root.Reconcile(t.Context(), widgetRequest)
			var located *reconcilers.Error
			if !errors.As(err, &located) || !errors.Is(err, errBoom) {
				t.Fatalf("returned %v", err)
			}
			checkError(t, "returned,", err, test.found)
		})
	}
}

func TestAggregateReconcilerDescribe(t *testing.T) {
	root := &widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: mergeWidget, Reconciler: widgetSequence{reflectingChild(&trace{})}}
	description := reconcilers.Describe(root)
	const expected = `AggregateReconciler "WidgetAggregateReconciler" Widget
└─ Sequence
   └─ ChildReconciler "ConfigMapChildReconciler" ConfigMap
`
	if description.String() != expected {
		t.Errorf("described as\n%s", description)
	}
	verbs := func(root *widgetAggregate) map[string][]string {
		t.Helper()
		rules, err := reconcilers.Describe(root).PolicyRules(widgetScheme, nil)
		if err != nil {
			t.Fatal(err)
		}
		verbs := map[string][]string{}
		for _, rule := range rules {
			verbs[rule.Resources[0]] = rule.Verbs
		}
		return verbs
	}
	alone := &widgetAggregate{Request: widgetRequest, MergeBeforeUpdate: mergeWidget}
	if got := fmt.Sprint(verbs(alone)); got != "map[events:[create patch] widgets:[get list watch create update delete]]" {
		t.Errorf("the short form uses %s", got)
	}
	alone = &widgetAggregate{Request: widgetRequest, AggregateObjectManager: &recordingManager{}}
	if got := fmt.Sprint(verbs(alone)); got != "map[events:[create patch] widgets:[get list watch create update patch delete]]" {
		t.Errorf("with a manager that does not say it uses %s", got)
	}
	if got := fmt.Sprint(verbs(&widgetAggregate{AggregateObjectManager: (*widgetManager)(nil)})); got == "" {
		t.Error("nothing is described")
	}
}
