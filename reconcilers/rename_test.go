package reconcilers_test

import (
	"context"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// renames makes a child whose name counts. It is ready unless an annotation says that it starts.
func renames(how reconcilers.Renaming) func(*configMapNode) {
	return func(node *configMapNode) {
		node.Renaming = how
		node.ChildIsReady = func(_ context.Context, child *corev1.ConfigMap) bool { return child.Annotations["starting"] == "" }
	}
}

// once is an object manager that says that it does not change what it has created.
type once struct {
	reconcilers.ObjectManager[*corev1.ConfigMap]
}

func (once) CreatesOnly() bool { return true }

// holdsData makes a child that may hold data.
func holdsData(node *configMapNode) { node.ChildObjectManager = once{node.ChildObjectManager} }

func starting(child *corev1.ConfigMap) { child.Annotations = map[string]string{"starting": "yes"} }

func called(name string) func(*corev1.ConfigMap) {
	return func(child *corev1.ConfigMap) { child.Name = name }
}

func made(second int64) func(*corev1.ConfigMap) {
	return func(child *corev1.ConfigMap) { child.CreationTimestamp = metav1.NewTime(time.Unix(second, 0)) }
}

func desiresAs(change ...func(*corev1.ConfigMap)) func(*configMapNode) {
	return desires(func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		for _, c := range change {
			c(child)
		}
		return child, nil
	})
}

// refusedName is the error of a node whose child is called gadget, and desired by another name.
func refusedName(desired string) string {
	return "ConfigMap default/" + desired + " is not created, since ConfigMap default/gadget exists, may hold data, and " +
		"would be lost: return the old name, or use OwnsEach with one member, where a new name is a new object"
}

func TestChildRenamed(t *testing.T) {
	is := func(how reconcilers.Renaming, changes ...func(*configMapNode)) func(*trace) widgetNode {
		return changedChild(append([]func(*configMapNode){desiresAs(called("new")), renames(how)}, changes...)...)
	}
	createNew := []client.Object{configMap.With(called("new"))}
	isNew := givenConfigMap.With(renamed("new"), made(9))
	third := givenConfigMap.With(renamed("third"), made(5))
	asNew := []rtesting.Event{createdEvent("new")}
	red := givenConfigMap.With(coloured("red"))
	conflict := apierrs.NewConflict(configMapResource, "gadget", errBoom)
	exists := apierrs.NewAlreadyExists(configMapResource, "new")
	inTheWay := givenConfigMap.With(renamed("new"), ownerless)
	starts := desiresAs(starting)
	createStarting := []client.Object{configMap.With(called("new"), starting)}
	deleteFails := rtesting.InduceFailure("delete", "ConfigMap", rtesting.InduceFailureOpts{Error: conflict})
	nodeTests{
		"ignored": {
			node:  is(reconcilers.IgnoreName),
			calls: []string{"desired child", "update ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red}, ExpectResource: reflecting("gadget"),
				ExpectUpdates: []client.Object{givenConfigMap}, ExpectEvents: []rtesting.Event{updatedEvent("gadget")},
			},
		},
		"nothing there": {
			node:  is(reconcilers.ByKind),
			calls: []string{"desired child", "create ConfigMap", "reflect new, <nil>"},
			widgetCase: widgetCase{
				ExpectResource: reflecting("new"), ExpectCreates: createNew, ExpectEvents: asNew,
			},
		},
		"created, and ready at once": {
			node:  is(reconcilers.ByKind),
			calls: []string{"desired child", "create ConfigMap", "delete ConfigMap", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{givenConfigMap}, ExpectResource: reflecting("new"),
				ExpectCreates: createNew, ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap)},
				ExpectEvents: append(asNew[:1:1], deletedEvent("gadget")),
			},
		},
		"created, and not ready yet": {
			node:  is(reconcilers.ByKind, starts),
			calls: []string{"desired child", "create ConfigMap", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red}, ExpectResource: reflecting("new"),
				ExpectCreates: createStarting, ExpectEvents: asNew,
			},
		},
		"not ready yet": {
			node:  is(reconcilers.ByKind),
			calls: []string{"desired child", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red, isNew.With(starting)}, ExpectResource: reflecting("new"),
			},
		},
		"ready": {
			node:  is(reconcilers.ByKind),
			calls: []string{"desired child", "delete ConfigMap", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red, isNew}, ExpectResource: reflecting("new"),
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(red)}, ExpectEvents: []rtesting.Event{deletedEvent("gadget")},
			},
		},
		"ready, but only the cache says so": {
			node:  is(reconcilers.ByKind),
			calls: []string{"desired child", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red, isNew}, ExpectResource: reflecting("new"),
				WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("get", "ConfigMap",
					rtesting.InduceFailureOpts{Error: apierrs.NewNotFound(configMapResource, "new")})},
			},
		},
		"the old one cannot be deleted yet": {
			node:  is(reconcilers.ByKind),
			calls: []string{"desired child", "delete ConfigMap"},
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{red, isNew},
				WithReactors:  []rtesting.ReactionFunc{deleteFails},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(red)}, ExpectEvents: failedTo("delete", "gadget", conflict),
				ShouldErr: true, Verify: returns(conflict),
			},
		},
		"a third name before the second is ready": {
			node:  is(reconcilers.ByKind, starts),
			calls: []string{"desired child", "delete ConfigMap", "create ConfigMap", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{givenConfigMap, third.With(starting)}, ExpectResource: reflecting("new"),
				ExpectCreates: createStarting, ExpectDeletes: []rtesting.DeleteRef{deleteOf(third)},
				ExpectEvents: []rtesting.Event{deletedEvent("third"), asNew[0]},
			},
		},
		"a third name, and the first two are not ready": {
			node:  is(reconcilers.ByKind, starts),
			calls: []string{"desired child", "delete ConfigMap", "create ConfigMap", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{givenConfigMap.With(starting), third.With(starting)}, ExpectResource: reflecting("new"),
				ExpectCreates: createStarting, ExpectDeletes: []rtesting.DeleteRef{deleteOf(third)},
				ExpectEvents: []rtesting.Event{deletedEvent("third"), asNew[0]},
			},
		},
		"a third name, and the first two are ready": {
			node:  is(reconcilers.ByKind, starts),
			calls: []string{"desired child", "delete ConfigMap", "create ConfigMap", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{givenConfigMap, third}, ExpectResource: reflecting("new"),
				ExpectCreates: createStarting, ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap)},
				ExpectEvents: []rtesting.Event{deletedEvent("gadget"), asNew[0]},
			},
		},
		"refused": {
			node:  is(reconcilers.ByKind, holdsData),
			calls: []string{"desired child", "update ConfigMap", "reflect gadget, " + refusedName("new")},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red}, ExpectResource: reflecting("gadget"),
				ExpectUpdates: []client.Object{givenConfigMap}, ExpectEvents: []rtesting.Event{updatedEvent("gadget")},
			},
		},
		"refused, and as desired": {
			node:       is(reconcilers.ByKind, holdsData),
			calls:      []string{"desired child", "reflect gadget, " + refusedName("new")},
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap}, ExpectResource: reflecting("gadget")},
		},
		"refused, and not as desired": {
			node:  is(reconcilers.ByKind, holdsData),
			calls: []string{"desired child", "update ConfigMap", "reflect gadget, " + refusedName("new") + "; moreover: " + immutable("data").Error()},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red}, ExpectResource: reflecting("gadget"), ExpectUpdates: []client.Object{givenConfigMap},
				WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("update", "ConfigMap", rtesting.InduceFailureOpts{Error: immutable("data")})},
				ExpectEvents: failedTo("update", "gadget", immutable("data")),
			},
		},
		"refused, and not recreated": {
			node:  is(reconcilers.ByKind, holdsData, func(node *configMapNode) { node.RecreateImmutable = true }),
			calls: []string{"desired child", "update ConfigMap", "reflect gadget, " + refusedName("new") + "; moreover: " + immutable("data").Error()},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red}, ExpectResource: reflecting("gadget"), ExpectUpdates: []client.Object{givenConfigMap},
				WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("update", "ConfigMap", rtesting.InduceFailureOpts{Error: immutable("data")})},
				ExpectEvents: failedTo("update", "gadget", immutable("data")),
			},
		},
		"refused, and a conflict": {
			node:  is(reconcilers.ByKind, holdsData),
			calls: []string{"desired child", "update ConfigMap"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red}, ExpectUpdates: []client.Object{givenConfigMap},
				WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("update", "ConfigMap", rtesting.InduceFailureOpts{Error: conflict})},
				ExpectEvents: failedTo("update", "gadget", conflict), ShouldErr: true, Verify: returns(conflict),
			},
		},
		"refused, and the old one is going": {
			node:       is(reconcilers.ByKind, holdsData),
			calls:      []string{"desired child", "reflect gadget, <nil>"},
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap.With(leaving)}, ExpectResource: reflecting("gadget")},
		},
		"refused, of several the last that is ready": {
			node:  is(reconcilers.ByKind, holdsData),
			calls: []string{"desired child", "reflect gadget, " + refusedName("new")},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap.With(made(7)), third.With(coloured("red")), third.With(renamed("zero"), starting, made(9))},
				ExpectResource: reflecting("gadget"),
			},
		},
		"not refused if it is there already": {
			node:  is(reconcilers.ByKind, holdsData),
			calls: []string{"desired child", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red, isNew}, ExpectResource: reflecting("new"),
			},
		},
		"not desired": {
			node:  is(reconcilers.ByKind, holdsData, desires(desiresNothing)),
			calls: []string{"desired child", "delete ConfigMap", "delete ConfigMap", "reflect nothing, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red, isNew}, ExpectResource: reflecting("nothing"),
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(red), deleteOf(isNew)},
				ExpectEvents:  []rtesting.Event{deletedEvent("gadget"), deletedEvent("new")},
			},
		},
		"terminating": {
			node:  is(reconcilers.ByKind, holdsData),
			calls: []string{"delete ConfigMap", "delete ConfigMap"},
			widgetCase: widgetCase{
				Resource:      terminatingWidget.Object(),
				GivenObjects:  []client.Object{red, isNew},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(red), deleteOf(isNew)},
				ExpectEvents:  []rtesting.Event{deletedEvent("gadget"), deletedEvent("new")},
			},
		},
		"only reflected": {
			node:  is(reconcilers.ByKind, failsToDesire(reconcilers.OnlyReconcileChildStatus)),
			calls: []string{"desired child", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red, isNew, third.With(starting, made(12))}, ExpectResource: reflecting("new"),
			},
		},
		"the name is taken": {
			node:  is(reconcilers.ByKind),
			calls: []string{"desired child", "create ConfigMap", "reflect nothing, " + exists.Error()},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red}, APIGivenObjects: []client.Object{inTheWay}, ExpectResource: reflecting("nothing"),
				ExpectCreates: createNew, ExpectEvents: failedTo("create", "new", exists),
				WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{Error: exists})},
				ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(inTheWay, widget, widgetScheme)},
			},
		},
		"made of a generated name": {
			node:       is(reconcilers.ByKind, desires(generatedName)),
			calls:      []string{"desired child", "reflect gadget-x7, <nil>"},
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap.With(renamed("gadget-x7"))}, ExpectResource: reflecting("gadget-x7")},
		},
		"labelled": {
			node: is(reconcilers.ByKind, func(node *configMapNode) {
				node.Name, node.LabelChildren = "Settings", true
				node.ChildObjectManager, node.MergeBeforeUpdate = nil, func(current, desired *corev1.ConfigMap) { current.Data = desired.Data }
			}),
			calls: []string{"desired child", "create ConfigMap", "delete ConfigMap", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap.With(childOf("Settings")), third.With(childOf("Other"))},
				ExpectResource: reflecting("new"), ExpectCreates: []client.Object{configMap.With(called("new"), childOf("Settings"))},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap)},
				ExpectEvents:  append(asNew[:1:1], deletedEvent("gadget")),
			},
		},
		"the new one made before children were labelled": {
			node: is(reconcilers.ByKind, func(node *configMapNode) {
				node.Name, node.LabelChildren = "Settings", true
				node.ChildObjectManager, node.MergeBeforeUpdate = nil, func(current, desired *corev1.ConfigMap) { current.Data = desired.Data }
			}),
			calls: []string{"desired child", "update ConfigMap", "delete ConfigMap", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap.With(childOf("Settings")), isNew},
				ExpectResource: reflecting("new"), ExpectUpdates: []client.Object{isNew.With(childOf("Settings"))},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap)},
				ExpectEvents:  []rtesting.Event{updatedEvent("new"), deletedEvent("gadget")},
			},
		},
		"not owned": {
			node:  is(reconcilers.ByKind, withoutOwner),
			calls: []string{"desired child", "create ConfigMap", "delete ConfigMap", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap.With(labelled), third},
				ExpectResource: reflecting("new"), ExpectCreates: []client.Object{configMap.With(called("new"), labelled)},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap)},
				ExpectEvents:  append(asNew[:1:1], deletedEvent("gadget")),
			},
		},
		"not owned, and not ready yet": {
			node:  is(reconcilers.ByKind, withoutOwner),
			calls: []string{"desired child", "reflect new, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap.With(labelled), isNew.With(labelled, starting)},
				ExpectResource: reflecting("new"), ExpectedResult: reconcilers.Result{RequeueAfter: 5 * time.Second},
			},
		},
	}.run(t)
}
