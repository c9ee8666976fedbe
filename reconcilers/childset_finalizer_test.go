package reconcilers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// guardedSet guards the children by a finalizer.
func guardedSet(node *configMapSet) {
	node.Finalizer = ours
	node.ListOptions = func(_ context.Context, w *resources.Widget) []client.ListOption {
		return []client.ListOption{client.InNamespace(w.Namespace), client.HasLabels{setLabel}}
	}
	node.OurChild = func(w *resources.Widget, child *corev1.ConfigMap) bool {
		return strings.HasPrefix(child.Name, w.Name+"-") && child.Labels[setLabel] != ""
	}
}

func shortFormSet(node *configMapSet) {
	node.ChildObjectManager = nil
	node.MergeBeforeUpdate = mergeConfigMap
}

func TestChildSetReconcilerWithFinalizer(t *testing.T) {
	patched := normal("FinalizerPatched", `Patched finalizer "`+ours+`"`)
	a, b, x := givenPart("a", ownerless), givenPart("b", ownerless), givenPart("x", ownerless)
	unowned := part("a")
	unowned.OwnerReferences = nil
	exists := apierrs.NewAlreadyExists(configMapResource, "gadget-a")
	blocker := givenPart("a", ownerless, func(c *corev1.ConfigMap) { c.Labels = nil })
	beingDeleted := widget.With(terminating(ours))
	tracks := func(children ...*corev1.ConfigMap) (requests []rtesting.TrackRequest) {
		for _, child := range children {
			requests = append(requests, rtesting.NewTrackRequest(child, widget, widgetScheme))
		}
		return requests
	}

	nodeTests{
		"it is on before the first child is there": {
			node:  changedSet([]string{"a"}, guardedSet),
			calls: []string{"desired children of 0 known", "patch Widget", "create ConfigMap", "reflect [a: gadget-a]"},
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy(ours)).Object(),
				ExpectPatches:  finalizersPatches(ours),
				ExpectCreates:  []client.Object{unowned},
				ExpectEvents:   []rtesting.Event{patched, createdEvent("gadget-a")},
			},
		},
		"without it there is no child": {
			node:  changedSet([]string{"a"}, guardedSet),
			calls: []string{"desired children of 0 known", "patch Widget", "reflect []"},
			widgetCase: widgetCase{
				WithReactors: []rtesting.ReactionFunc{
					rtesting.InduceFailure("patch", "Widget", rtesting.InduceFailureOpts{Error: errBoom}),
				},
				ExpectPatches: finalizersPatches(ours),
				ExpectEvents: []rtesting.Event{
					warning("FinalizerPatchFailed", `Failed to patch finalizer "`+ours+`": boom`),
				},
				ShouldErr: true,
				Verify:    returns(errBoom),
			},
		},
		// The finalizer implies that there are no owner references, for finding the children too.
		"a child that is not desired any more is deleted": {
			node:  changedSet([]string{"a"}, guardedSet),
			calls: []string{"desired children of 2 known", "delete ConfigMap", "reflect [a: gadget-a, x: nothing]"},
			widgetCase: widgetCase{
				Resource:      widget.With(patchedBy(ours)).Object(),
				GivenObjects:  []client.Object{a, x},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(x)},
				ExpectEvents:  []rtesting.Event{deletedEvent("gadget-x")},
			},
		},
		"an object that is not ours is tracked by the short form": {
			node: changedSet([]string{"a"}, guardedSet, shortFormSet),
			calls: []string{
				"desired children of 0 known",
				"create ConfigMap",
				"reflect [a: nothing (" + exists.Error() + ")]",
			},
			widgetCase: widgetCase{
				Resource:        widget.With(patchedBy(ours)).Object(),
				APIGivenObjects: []client.Object{blocker},
				WithReactors: []rtesting.ReactionFunc{
					rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{Error: exists}),
				},
				ExpectCreates: []client.Object{unowned},
				ExpectTracks:  tracks(blocker),
				ExpectEvents:  failedTo("create", "gadget-a", exists),
			},
		},
		// That children were asked to go does not mean that they are gone.
		"terminating, the finalizer waits for the children": {
			node:  changedSet([]string{"a"}, guardedSet),
			calls: []string{"delete ConfigMap", "delete ConfigMap", "reflect []"},
			widgetCase: widgetCase{
				Resource:      beingDeleted.Object(),
				GivenObjects:  []client.Object{a, b},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(a), deleteOf(b)},
				ExpectTracks:  tracks(a, b),
				ExpectEvents:  []rtesting.Event{deletedEvent("gadget-a"), deletedEvent("gadget-b")},
			},
		},
		"terminating, the short form tracks once": {
			node:  changedSet([]string{"a"}, guardedSet, shortFormSet),
			calls: []string{"delete ConfigMap", "reflect []"},
			widgetCase: widgetCase{
				Resource:      beingDeleted.Object(),
				GivenObjects:  []client.Object{a},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(a)},
				ExpectTracks:  tracks(a),
				ExpectEvents:  []rtesting.Event{deletedEvent("gadget-a")},
			},
		},
		"terminating, the children are on their way": {
			node:  changedSet([]string{"a"}, guardedSet),
			calls: []string{"reflect []"},
			widgetCase: widgetCase{
				Resource:     beingDeleted.Object(),
				GivenObjects: []client.Object{givenPart("a", ownerless, leaving)},
				ExpectTracks: tracks(a),
			},
		},
		"terminating, the children are gone": {
			node:  changedSet([]string{"a"}, guardedSet),
			calls: []string{"reflect []", "patch Widget"},
			widgetCase: widgetCase{
				Resource:       beingDeleted.Object(),
				ExpectResource: beingDeleted.With(patchedBy()).Object(),
				ExpectPatches:  finalizersPatches(),
				ExpectEvents:   []rtesting.Event{patched},
			},
		},
		"terminating, the children are gone, but the reflection fails": {
			node:  changedSet([]string{"a"}, guardedSet, failsToReflect),
			calls: []string{},
			widgetCase: widgetCase{
				Resource: beingDeleted.Object(), ExpectResource: beingDeleted.Object(), ShouldErr: true, Verify: returns(errReflect),
			},
		},
		"terminating without a tracker, it comes back until the children are gone": {
			node:  withoutTracker(changedSet([]string{"a"}, guardedSet)),
			calls: []string{"delete ConfigMap", "reflect []"},
			widgetCase: widgetCase{
				Resource:       beingDeleted.Object(),
				GivenObjects:   []client.Object{a},
				ExpectDeletes:  []rtesting.DeleteRef{deleteOf(a)},
				ExpectEvents:   []rtesting.Event{deletedEvent("gadget-a")},
				ExpectedResult: requeue,
			},
		},
		"terminating, a child cannot be tracked": {
			node: withConfig(func(config *reconcilers.Config) {
				config.Tracker = failingTracker{config.Tracker}
			})(changedSet([]string{"a"}, guardedSet)),
			calls: []string{},
			widgetCase: widgetCase{
				Resource: beingDeleted.Object(), GivenObjects: []client.Object{a}, ShouldErr: true, Verify: returns(errBoom),
			},
		},
		"only the status is asked for, and the manager keeps its finalizer": {
			node: changedSet(nil, setFailsToDesire(reconcilers.OnlyReconcileChildStatus), func(node *configMapSet) {
				node.ChildObjectManager = &configMaps{MergeBeforeUpdate: mergeConfigMap, Finalizer: ours}
			}),
			calls:      []string{"desired children of 0 known", "reflect []"},
			widgetCase: widgetCase{Resource: widget.With(patchedBy(ours)).Object()},
		},
		"the reflection with a result comes before the one with an error": {
			node: changedSet(nil, failsToReflect, func(node *configMapSet) {
				node.ReflectChildrenStatusOnParentWithResult = func(
					context.Context, *resources.Widget, partResult,
				) (reconcilers.Result, error) {
					return minute, nil
				}
			}),
			widgetCase: widgetCase{ExpectedResult: minute},
		},
		"terminating, the cache does not show a child yet": {
			node:  changedSet([]string{"a"}, guardedSet),
			calls: []string{"delete ConfigMap", "reflect []"},
			widgetCase: widgetCase{
				Resource:        beingDeleted.Object(),
				APIGivenObjects: []client.Object{a},
				ExpectDeletes:   []rtesting.DeleteRef{deleteOf(a)},
				ExpectEvents:    []rtesting.Event{deletedEvent("gadget-a")},
				ExpectTracks:    tracks(a),
			},
		},
		"terminating, a child cannot be deleted": {
			node:  changedSet([]string{"a"}, guardedSet),
			calls: []string{"delete ConfigMap", "reflect []"},
			widgetCase: widgetCase{
				Resource:     beingDeleted.Object(),
				GivenObjects: []client.Object{a},
				WithReactors: []rtesting.ReactionFunc{
					rtesting.InduceFailure("delete", "ConfigMap", rtesting.InduceFailureOpts{Error: errBoom}),
				},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(a)},
				ExpectTracks:  tracks(a),
				ExpectEvents:  failedTo("delete", "gadget-a", errBoom),
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		// The object manager may hold a finalizer too: it goes when the last child has.
		"terminating, the manager's own finalizer": {
			node: changedSet([]string{"a"}, func(node *configMapSet) {
				node.ChildObjectManager = &configMaps{MergeBeforeUpdate: mergeConfigMap, Finalizer: ours}
			}),
			calls: []string{"patch Widget", "reflect []"},
			widgetCase: widgetCase{
				Resource:       beingDeleted.Object(),
				ExpectResource: beingDeleted.With(patchedBy()).Object(),
				ExpectPatches:  finalizersPatches(),
				ExpectEvents:   []rtesting.Event{patched},
			},
		},
	}.run(t)
}
