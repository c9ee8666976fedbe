package reconcilers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managing is a node that has a manager make actual agree with desired. In a replay, actual is what is there.
type managing struct {
	manager         reconcilers.ObjectManager[*corev1.ConfigMap]
	actual, desired *corev1.ConfigMap
	calls           *trace
}

func (m managing) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	return nil
}

func (m managing) Reconcile(ctx context.Context, resource *resources.Widget) (reconcilers.Result, error) {
	actual := m.actual.DeepCopy()
	if m.calls.replays {
		var err error
		if actual, err = firstChild(ctx, resource); err != nil {
			return reconcilers.Result{}, err
		}
	}
	managed, err := m.manager.Manage(ctx, resource, actual, m.desired.DeepCopy())
	if managed == nil {
		m.calls.add("nothing")
	} else {
		m.calls.add("%s %s", managed.Name, managed.Data["color"])
	}
	return reconcilers.Result{}, err
}

// firstChild returns a child of a resource, nil if there is none.
func firstChild(ctx context.Context, resource *resources.Widget) (*corev1.ConfigMap, error) {
	all := &corev1.ConfigMapList{}
	if err := reconcilers.RetrieveConfigOrDie(ctx).List(ctx, all, client.InNamespace(resource.Namespace)); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if metav1.IsControlledBy(&all.Items[i], resource) {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

func manages(manager configMapsWith, actual, desired *corev1.ConfigMap) func(*trace) widgetNode {
	return func(calls *trace) widgetNode {
		return managing{manager: manager(calls), actual: actual, desired: desired, calls: calls}
	}
}

// configMapsWith makes a manager.
type configMapsWith func(calls *trace) *configMaps

func merging(calls *trace) *configMaps {
	return &configMaps{MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) {
		calls.add("merge %s into %s", desired.Data["color"], current.Data["color"])
		mergeConfigMap(current, desired)
	}}
}

// quietly is merging that does not record.
func quietly(changes ...func(*configMaps)) configMapsWith {
	return func(*trace) *configMaps {
		manager := &configMaps{MergeBeforeUpdate: mergeConfigMap}
		for _, change := range changes {
			change(manager)
		}
		return manager
	}
}

func guarding(m *configMaps) { m.Finalizer = ours }

func tracking(m *configMaps) { m.TrackDesired = true }

const changedSince = `Operation cannot be fulfilled on ConfigMap "gadget": the ResourceVersion in the precondition (999) does not match ` +
	`the ResourceVersion in record (1001). The object might have been modified`

func TestUpdatingObjectManager(t *testing.T) {
	guarded := widget.With(func(w *resources.Widget) { w.Finalizers = []string{ours} })
	add := finalizersPatch(`{"metadata":{"finalizers":["` + ours + `"],"resourceVersion":"999"}}`)
	remove := finalizersPatch(`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`)
	patched := normal("FinalizerPatched", `Patched finalizer "`+ours+`"`)
	created := normal("Created", `Created ConfigMap "gadget"`)
	updated := normal("Updated", `Updated ConfigMap "gadget"`)
	deleted := normal("Deleted", `Deleted ConfigMap "gadget"`)

	desired := configMap.Object()
	given := givenConfigMap.With(func(c *corev1.ConfigMap) { c.ResourceVersion = "999" })
	red := given.With(func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": "red"} })
	leaving := given.With(func(c *corev1.ConfigMap) {
		c.DeletionTimestamp = new(metav1.NewTime(time.UnixMilli(2000)))
		c.Finalizers = []string{theirs}
	})
	leavingRed := leaving.With(func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": "red"} })
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(given, widget, widgetScheme)}
	orphaning := deleteOf(given)
	orphaning.PropagationPolicy = new(metav1.DeletePropagationOrphan)
	fails := func(verb, kind string, err error) []rtesting.ReactionFunc {
		return []rtesting.ReactionFunc{rtesting.InduceFailure(verb, kind, rtesting.InduceFailureOpts{Error: err})}
	}
	hush := fmt.Errorf("%w: %w", errBoom, reconcilers.ErrQuiet)

	nodeTests{
		"absent, not desired": {
			node:  manages(quietly(guarding), nil, nil),
			calls: []string{"patch Widget", "nothing"},
			widgetCase: widgetCase{
				Resource:       guarded.Object(),
				ExpectResource: widget.With(patchedBy()).Object(),
				ExpectPatches:  []rtesting.PatchRef{remove},
				ExpectEvents:   []rtesting.Event{patched},
			},
		},
		"absent by its creation timestamp, not desired": {
			node:       manages(quietly(), &corev1.ConfigMap{}, nil),
			calls:      []string{"nothing"},
			widgetCase: widgetCase{},
		},
		"absent, not desired, the finalizer cannot be cleared": {
			node:  manages(quietly(guarding), nil, nil),
			calls: []string{"patch Widget", "nothing"},
			widgetCase: widgetCase{
				Resource:      guarded.Object(),
				WithReactors:  fails("patch", "Widget", errBoom),
				ExpectPatches: []rtesting.PatchRef{remove},
				ExpectEvents:  []rtesting.Event{warning("FinalizerPatchFailed", `Failed to patch finalizer "`+ours+`": boom`)},
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		// The finalizer stays until the object is seen to be gone.
		"present, not desired": {
			node:  manages(quietly(guarding), given.Object(), nil),
			calls: []string{"delete ConfigMap", "nothing"},
			widgetCase: widgetCase{
				Resource:      guarded.Object(),
				GivenObjects:  []client.Object{given},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(given)},
				ExpectEvents:  []rtesting.Event{deleted},
			},
		},
		"present, not desired, what it owns stays": {
			node: manages(quietly(func(m *configMaps) { m.DeletionPropagation = metav1.DeletePropagationOrphan }), given.Object(), nil),
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{given},
				ExpectDeletes: []rtesting.DeleteRef{orphaning},
				ExpectEvents:  []rtesting.Event{deleted},
			},
		},
		"present, not desired, gone already": {
			node:  manages(quietly(), given.Object(), nil),
			calls: []string{"delete ConfigMap", "nothing"},
			widgetCase: widgetCase{
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(given)},
				Replays:       rtesting.NoReplays("the manager is given an object that is not there"),
			},
		},
		// Somebody changed it since it was read: that may be why it is wanted after all.
		"present, not desired, changed since": {
			node:  manages(quietly(), given.Object(), nil),
			calls: []string{"delete ConfigMap", "nothing"},
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{given.With(func(c *corev1.ConfigMap) { c.ResourceVersion = "1001" })},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(given)},
				ShouldErr:     true,
				ExpectEvents:  []rtesting.Event{warning("DeleteFailed", `Failed to delete ConfigMap "gadget": `+changedSince)},
				Verify: func(t *testing.T, _ reconcilers.Result, err error) {
					if !apierrs.IsConflict(err) {
						t.Errorf("returned %v, expected a conflict", err)
					}
				},
			},
		},
		"present, not desired, cannot be deleted": {
			node:  manages(quietly(guarding), given.Object(), nil),
			calls: []string{"delete ConfigMap", "nothing"},
			widgetCase: widgetCase{
				Resource:      guarded.Object(),
				GivenObjects:  []client.Object{given},
				WithReactors:  fails("delete", "ConfigMap", errBoom),
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(given)},
				ExpectEvents:  failedTo("delete", "gadget", errBoom),
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		"present, not desired, cannot be deleted, quietly": {
			node:  manages(quietly(), given.Object(), nil),
			calls: []string{"delete ConfigMap", "nothing"},
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{given},
				WithReactors:  fails("delete", "ConfigMap", hush),
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(given)},
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		// It is there still, so that is what is returned, and the finalizer stays.
		"terminating, not desired": {
			node:       manages(quietly(guarding), leaving.Object(), nil),
			calls:      []string{"gadget blue"},
			widgetCase: widgetCase{Resource: guarded.Object(), GivenObjects: []client.Object{leaving}},
		},
		// The finalizer waits for an event, so that has to arrive also where nothing else tracked the object, as
		// after a restart.
		"terminating, not desired, tracked": {
			node:       manages(quietly(guarding, tracking), leaving.Object(), nil),
			calls:      []string{"gadget blue"},
			widgetCase: widgetCase{Resource: guarded.Object(), GivenObjects: []client.Object{leaving}, ExpectTracks: tracks},
		},
		// What were written to it would go with it. Its going wakes the resource, and another can be created.
		"terminating, desired otherwise, guarded and tracked": {
			node:  manages(quietly(guarding, tracking), leavingRed.Object(), desired),
			calls: []string{"patch Widget", "gadget red"},
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy(ours)).Object(),
				GivenObjects:   []client.Object{leavingRed},
				ExpectPatches:  []rtesting.PatchRef{add},
				ExpectEvents:   []rtesting.Event{patched},
				ExpectTracks:   tracks,
			},
		},
		"terminating, desired, cannot be guarded": {
			node:  manages(quietly(guarding, tracking), leavingRed.Object(), desired),
			calls: []string{"patch Widget", "nothing"},
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{leavingRed},
				WithReactors:  fails("patch", "Widget", errBoom),
				ExpectPatches: []rtesting.PatchRef{add},
				ExpectEvents:  []rtesting.Event{warning("FinalizerPatchFailed", `Failed to patch finalizer "`+ours+`": boom`)},
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		"present, not desired, tracked": {
			node:  manages(quietly(tracking), given.Object(), nil),
			calls: []string{"delete ConfigMap", "nothing"},
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{given},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(given)},
				ExpectEvents:  []rtesting.Event{deleted},
				ExpectTracks:  tracks,
			},
		},
		"present, not desired, cannot be deleted, tracked": {
			node:  manages(quietly(tracking), given.Object(), nil),
			calls: []string{"delete ConfigMap", "nothing"},
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{given},
				WithReactors:  fails("delete", "ConfigMap", errBoom),
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(given)},
				ExpectEvents:  failedTo("delete", "gadget", errBoom),
				ExpectTracks:  tracks,
				ShouldErr:     true,
			},
		},
		"desired, absent": {
			node:  manages(merging, nil, desired),
			calls: []string{"create ConfigMap", "merge blue into blue", "gadget blue"},
			widgetCase: widgetCase{
				ExpectCreates: []client.Object{configMap},
				ExpectEvents:  []rtesting.Event{created},
			},
		},
		"desired, absent by its creation timestamp, guarded and tracked": {
			node:  manages(quietly(guarding, tracking), &corev1.ConfigMap{}, desired),
			calls: []string{"patch Widget", "create ConfigMap", "gadget blue"},
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy(ours)).Object(),
				ExpectPatches:  []rtesting.PatchRef{add},
				ExpectCreates:  []client.Object{configMap},
				ExpectEvents:   []rtesting.Event{patched, created},
				ExpectTracks:   tracks,
			},
		},
		"desired, absent, with a generated name that is tracked": {
			node: manages(quietly(tracking), nil, configMap.With(func(c *corev1.ConfigMap) {
				c.Name, c.GenerateName = "", "gadget-"
			}).Object()),
			calls: []string{"create ConfigMap", "gadget-001 blue"},
			widgetCase: widgetCase{
				ExpectCreates: []client.Object{configMap.With(func(c *corev1.ConfigMap) { c.Name, c.GenerateName = "", "gadget-" })},
				ExpectEvents:  []rtesting.Event{normal("Created", `Created ConfigMap "gadget-001"`)},
				ExpectTracks: []rtesting.TrackRequest{
					rtesting.NewTrackRequest(given.With(func(c *corev1.ConfigMap) { c.Name = "gadget-001" }), widget, widgetScheme),
				},
				// A node that lists its children remembers what it has created. This one does not.
				Replays: rtesting.Replays{Skip: []rtesting.Fault{rtesting.Stale("list ConfigMap *")}},
			},
		},
		"desired, absent, cannot be guarded": {
			node:  manages(quietly(guarding, tracking), nil, desired),
			calls: []string{"patch Widget", "nothing"},
			widgetCase: widgetCase{
				WithReactors:  fails("patch", "Widget", errBoom),
				ExpectPatches: []rtesting.PatchRef{add},
				ExpectEvents:  []rtesting.Event{warning("FinalizerPatchFailed", `Failed to patch finalizer "`+ours+`": boom`)},
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		"desired, absent, cannot be created": {
			node: manages(quietly(), nil, desired),
			widgetCase: widgetCase{
				WithReactors:  fails("create", "ConfigMap", errBoom),
				ExpectCreates: []client.Object{configMap},
				ExpectEvents:  failedTo("create", "gadget", errBoom),
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		"desired, absent, cannot be created, quietly": {
			node: manages(quietly(), nil, desired),
			widgetCase: widgetCase{
				WithReactors:  fails("create", "ConfigMap", hush),
				ExpectCreates: []client.Object{configMap},
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		"in sync": {
			node:       manages(merging, given.Object(), desired),
			calls:      []string{"merge blue into blue", "gadget blue"},
			widgetCase: widgetCase{GivenObjects: []client.Object{given}},
		},
		"in sync, guarded and tracked": {
			node:  manages(quietly(guarding, tracking), given.Object(), desired),
			calls: []string{"patch Widget", "gadget blue"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{given},
				ExpectResource: widget.With(patchedBy(ours)).Object(),
				ExpectPatches:  []rtesting.PatchRef{add},
				ExpectEvents:   []rtesting.Event{patched},
				ExpectTracks:   tracks,
			},
		},
		"outdated": {
			node:  manages(merging, red.Object(), desired),
			calls: []string{"merge blue into red", "update ConfigMap", "merge blue into blue", "gadget blue"},
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{red},
				ExpectUpdates: []client.Object{given},
				ExpectEvents:  []rtesting.Event{updated},
			},
		},
		"outdated, guarded and tracked": {
			node:  manages(quietly(guarding, tracking), red.Object(), desired),
			calls: []string{"update ConfigMap", "gadget blue"},
			widgetCase: widgetCase{
				Resource:      guarded.Object(),
				GivenObjects:  []client.Object{red},
				ExpectUpdates: []client.Object{given},
				ExpectEvents:  []rtesting.Event{updated},
				ExpectTracks:  tracks,
			},
		},
		"outdated, cannot be updated": {
			node: manages(quietly(tracking), red.Object(), desired),
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{red},
				WithReactors:  fails("update", "ConfigMap", errBoom),
				ExpectUpdates: []client.Object{given},
				ExpectEvents:  failedTo("update", "gadget", errBoom),
				ExpectTracks:  tracks,
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		"outdated, cannot be updated, quietly": {
			node: manages(quietly(), red.Object(), desired),
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{red},
				WithReactors:  fails("update", "ConfigMap", hush),
				ExpectUpdates: []client.Object{given},
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		"immutable fields are harmonised": {
			node: manages(func(calls *trace) *configMaps {
				manager := merging(calls)
				manager.HarmonizeImmutableFields = func(current, desired *corev1.ConfigMap) {
					calls.add("harmonise %s with %s", desired.Data["color"], current.Data["color"])
					desired.Data = current.Data
				}
				return manager
			}, red.Object(), desired),
			calls:      []string{"harmonise blue with red", "merge red into red", "gadget red"},
			widgetCase: widgetCase{GivenObjects: []client.Object{red}},
		},
	}.run(t)
}

func TestUpdatingObjectManagerValidate(t *testing.T) {
	type duckManager = reconcilers.UpdatingObjectManager[*duckWidget]
	quacks := &duckWidget{TypeMeta: metav1.TypeMeta{APIVersion: "test.espalier.dev/v1", Kind: "Widget"}}
	merge := func(current, desired *duckWidget) { current.Spec = desired.Spec }
	validationTests{
		"valid": {node: &configMaps{MergeBeforeUpdate: mergeConfigMap}},
		// Validation does not fill in the name.
		"empty": {node: &configMaps{}, shallow: `UpdatingObjectManager "" must define MergeBeforeUpdate`},
		"named": {node: &configMaps{Name: "mine"}, shallow: `UpdatingObjectManager "mine" must define MergeBeforeUpdate`},
		"duck": {
			node:    &duckManager{Name: "mine", Type: quacks, MergeBeforeUpdate: merge},
			shallow: `UpdatingObjectManager "mine" must enable DangerouslyAllowDuckTypes to use a duck type`,
		},
		"duck, unnamed": {
			node:    &duckManager{Type: quacks, MergeBeforeUpdate: merge},
			shallow: `UpdatingObjectManager "" must enable DangerouslyAllowDuckTypes to use a duck type`,
		},
		"unknown propagation": {
			node:    &configMaps{Name: "mine", MergeBeforeUpdate: mergeConfigMap, DeletionPropagation: "Sometimes"},
			shallow: `UpdatingObjectManager "mine" must have a known DeletionPropagation, not "Sometimes"`,
		},
		"duck allowed": {node: &duckManager{Type: quacks, MergeBeforeUpdate: merge, DangerouslyAllowDuckTypes: true}},
	}.run(t)
}

func TestUpdatingObjectManagerSetup(t *testing.T) {
	ctx := testContext(t, expectWidget().Config())
	const missing = `UpdatingObjectManager "ConfigMapUpdatingObjectManager" must define MergeBeforeUpdate`
	checkError(t, "Setup", (&configMaps{}).Setup(ctx), missing)
	checkError(t, "SetupWithManager", (&configMaps{}).SetupWithManager(ctx, nil, nil), missing)
	checkError(t, "valid", (&configMaps{MergeBeforeUpdate: mergeConfigMap}).SetupWithManager(ctx, nil, nil), "")
}

// An update covers what the duck type covers and nothing else, so it is to be allowed.
func TestUpdatingObjectManagerOfDucks(t *testing.T) {
	kind := metav1.TypeMeta{APIVersion: "test.espalier.dev/v1", Kind: "Widget"}
	actual := &duckWidget{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "quacks", CreationTimestamp: metav1.NewTime(time.UnixMilli(1000)), ResourceVersion: "999",
	}}
	desired := &duckWidget{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "quacks"}}
	desired.Spec.Fields = map[string]string{"color": "blue"}
	merged := actual.DeepCopyObject().(*duckWidget)
	merged.Spec = desired.Spec
	expected := &unstructured.Unstructured{}
	if err := duck.Convert(merged, expected); err != nil {
		t.Fatal(err)
	}
	expect := expectWidget(actual)
	expect.ExpectUpdates = []client.Object{expected}
	expect.ExpectEvents = []rtesting.Event{normal("Updated", `Updated Widget "quacks"`)}
	manager := &reconcilers.UpdatingObjectManager[*duckWidget]{
		Type:                      &duckWidget{TypeMeta: kind},
		DangerouslyAllowDuckTypes: true,
		MergeBeforeUpdate:         func(current, desired *duckWidget) { current.Spec = desired.Spec },
	}
	managed, err := manager.Manage(testContext(t, expect.Config()), widget.Object(), actual, desired)
	if err != nil || managed.Spec.Fields["color"] != "blue" {
		t.Errorf("it returned %v and %v, want the color blue and no error", managed, err)
	}
	expect.AssertExpectations(t)
}
