package reconcilers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	parts      = reconcilers.ChildSetReconciler[*resources.Widget, *corev1.ConfigMap, *corev1.ConfigMapList]
	partResult = reconcilers.ChildSetResult[*corev1.ConfigMap]
)

// member is a child that is desired, with an identity; its name is that of the identity unless there is another.
func member(id string, name ...string) rtesting.Fixture[*corev1.ConfigMap] {
	return configMap.With(func(child *corev1.ConfigMap) {
		child.Name = "part-" + id
		for _, n := range name {
			child.Name = "part-" + n
		}
		child.Labels = map[string]string{"part": id}
	})
}

// givenMember is member in the cluster.
func givenMember(id string, name ...string) rtesting.Fixture[*corev1.ConfigMap] {
	return member(id, name...).With(func(child *corev1.ConfigMap) {
		child.UID = types.UID(child.Name + "-uid")
		child.CreationTimestamp = givenConfigMap.Object().CreationTimestamp
	})
}

func redden(child *corev1.ConfigMap) { child.Data = map[string]string{"color": "red"} }
func nameless(child *corev1.ConfigMap) {
	child.Name, child.GenerateName = "", "part-"
}
func disown(child *corev1.ConfigMap) { child.OwnerReferences = nil }

// set is a child set that desires the children, and records what it reflects.
func set(calls *trace, desired ...rtesting.Fixture[*corev1.ConfigMap]) *parts {
	return &parts{
		DesiredChildren: func(ctx context.Context, _ *resources.Widget) ([]*corev1.ConfigMap, error) {
			calls.add("desired")
			var children []*corev1.ConfigMap
			for _, child := range desired {
				children = append(children, child.Object())
			}
			return children, nil
		},
		IdentifyChild:      func(child *corev1.ConfigMap) string { return child.Labels["part"] },
		ChildObjectManager: &configMaps{MergeBeforeUpdate: mergeConfigMap},
		ReflectChildrenStatusOnParent: func(_ context.Context, _ *resources.Widget, result partResult) {
			calls.add("reflect%s", describeParts(result))
		},
	}
}

func describeParts(result partResult) string {
	text := ""
	for _, partial := range result.Children {
		child := "none"
		if partial.Child != nil {
			child = partial.Child.Name + " " + partial.Child.Data["color"]
		}
		text += fmt.Sprintf(" %s=%s", partial.Id, child)
		if partial.Err != nil {
			text += fmt.Sprintf(" (%s)", apierrs.ReasonForError(partial.Err))
		}
	}
	return text
}

func deletes(children ...rtesting.Fixture[*corev1.ConfigMap]) []rtesting.DeleteRef {
	var refs []rtesting.DeleteRef
	for _, child := range children {
		refs = append(refs, rtesting.NewDeleteRefFromObject(child, widgetScheme))
	}
	return refs
}

func memberEvent(reason, name string) rtesting.Event {
	return normal(reason, fmt.Sprintf("%s ConfigMap %q", reason, name))
}

func TestChildSetValidates(t *testing.T) {
	changed := func(changes ...func(*parts)) *parts {
		node := set(&trace{})
		for _, change := range changes {
			change(node)
		}
		return node
	}
	const prefix = `ChildSetReconciler "ConfigMapChildSetReconciler" must `
	noOurs := func(n *parts) { n.OurChild = nil }
	unowned := func(n *parts) {
		n.SkipOwnerReference = true
		n.OurChild = func(*resources.Widget, *corev1.ConfigMap) bool { return true }
		n.ListOptions = func(context.Context, *resources.Widget) []client.ListOption { return nil }
	}
	byFinalizer := func(n *parts) { n.SkipOwnerReference, n.Finalizer = false, "f.io/f" }
	validationTests{
		"empty":   {node: &parts{}, shallow: prefix + "implement DesiredChildren"},
		"named":   {node: &parts{Name: "my"}, shallow: `ChildSetReconciler "my" must implement DesiredChildren`},
		"valid":   {node: changed()},
		"unowned": {node: changed(unowned)},
		"no reflect": {
			node:    changed(func(n *parts) { n.ReflectChildrenStatusOnParent = nil }),
			shallow: prefix + "implement ReflectChildrenStatusOnParent or ReflectChildrenStatusOnParentWithError",
		},
		"unowned without OurChild": {
			node:    changed(unowned, noOurs),
			shallow: prefix + "implement OurChild since owner references are not used",
		},
		"finalizer without OurChild": {
			node:    changed(unowned, byFinalizer, noOurs),
			shallow: prefix + "implement OurChild since owner references are not used",
		},
		"unowned without ListOptions": {
			node:    changed(unowned, func(n *parts) { n.ListOptions = nil }),
			shallow: prefix + "implement ListOptions since owner references are not used",
		},
		"finalizer without ListOptions": {
			node:    changed(unowned, byFinalizer, func(n *parts) { n.ListOptions = nil }),
			shallow: prefix + "implement ListOptions since owner references are not used",
		},
		"no identity": {node: changed(func(n *parts) { n.IdentifyChild = nil }), shallow: prefix + "implement IdentifyChild"},
		"no manager": {
			node:    changed(func(n *parts) { n.ChildObjectManager = nil }),
			shallow: prefix + "implement ChildObjectManager",
		},
		"identity comes before manager": {
			node:    changed(func(n *parts) { n.ChildObjectManager, n.IdentifyChild = nil, nil }),
			shallow: prefix + "implement IdentifyChild",
		},
		"OurChild comes before identity": {
			node:    changed(unowned, noOurs, func(n *parts) { n.IdentifyChild = nil }),
			shallow: prefix + "implement OurChild since owner references are not used",
		},
		"invalid manager": {
			node:      changed(func(n *parts) { n.ChildObjectManager = &configMaps{Name: "my"} }),
			recursive: prefix + `have a valid ChildObjectManager: UpdatingObjectManager "my" must define MergeBeforeUpdate`,
		},
	}.run(t)
}

func TestChildSetMakesChildrenAgree(t *testing.T) {
	nodeTests{
		"creates, by identity": {
			widgetCase: widgetCase{
				WithReactors:  []rtesting.ReactionFunc{born},
				ExpectCreates: []client.Object{member("a"), member("b")},
				ExpectEvents:  []rtesting.Event{memberEvent("Created", "part-a"), memberEvent("Created", "part-b")},
			},
			node:  func(calls *trace) widgetNode { return set(calls, member("b"), member("a")) },
			calls: []string{"desired", "create ConfigMap", "create ConfigMap", "reflect a=part-a blue b=part-b blue"},
		},
		"owns what it creates": {
			widgetCase: widgetCase{
				WithReactors:  []rtesting.ReactionFunc{born},
				ExpectCreates: []client.Object{member("a")},
				ExpectEvents:  []rtesting.Event{memberEvent("Created", "part-a")},
			},
			node: func(calls *trace) widgetNode { return set(calls, member("a").With(disown)) },
		},
		"is in sync": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenMember("b"), givenMember("a")}},
			node:       func(calls *trace) widgetNode { return set(calls, member("a"), member("b")) },
			calls:      []string{"desired", "reflect a=part-a blue b=part-b blue"},
		},
		"updates, creates and deletes": {
			widgetCase: widgetCase{
				WithReactors:  []rtesting.ReactionFunc{born},
				GivenObjects:  []client.Object{givenMember("b").With(redden), givenMember("a"), givenMember("d")},
				ExpectCreates: []client.Object{member("c")},
				ExpectUpdates: []client.Object{givenMember("b")},
				ExpectDeletes: deletes(member("a")),
				ExpectEvents:  []rtesting.Event{memberEvent("Deleted", "part-a"), memberEvent("Updated", "part-b"), memberEvent("Created", "part-c")},
			},
			node: func(calls *trace) widgetNode { return set(calls, member("c"), member("b"), member("d")) },
			calls: []string{
				"desired", "delete ConfigMap", "update ConfigMap", "create ConfigMap",
				"reflect a=none b=part-b blue c=part-c blue d=part-d blue",
			},
		},
		"leaves what others own": {
			widgetCase: widgetCase{GivenObjects: []client.Object{
				givenMember("a").With(disown),
				givenMember("b").With(func(child *corev1.ConfigMap) { child.OwnerReferences[0].UID = "other" }),
			}},
			node:  func(calls *trace) widgetNode { return set(calls) },
			calls: []string{"desired", "reflect"},
		},
		"leaves what is not our child": {
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{givenMember("a"), givenMember("z")},
				ExpectDeletes: deletes(member("z")), ExpectEvents: []rtesting.Event{memberEvent("Deleted", "part-z")},
			},
			node: func(calls *trace) widgetNode {
				node := set(calls)
				node.OurChild = func(_ *resources.Widget, child *corev1.ConfigMap) bool { return child.Labels["part"] == "z" }
				return node
			},
			calls: []string{"desired", "delete ConfigMap", "reflect z=none"},
		},
		"deletes one without identity, first": {
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{givenMember("a"), givenMember("", "nameless")},
				ExpectDeletes: deletes(member("", "nameless")), ExpectEvents: []rtesting.Event{memberEvent("Deleted", "part-nameless")},
			},
			node:  func(calls *trace) widgetNode { return set(calls, member("a")) },
			calls: []string{"desired", "delete ConfigMap", "reflect =none a=part-a blue"},
		},
		"replaces several of one identity": {
			widgetCase: widgetCase{
				WithReactors:  []rtesting.ReactionFunc{born},
				GivenObjects:  []client.Object{givenMember("a", "one"), givenMember("a", "two"), givenMember("b")},
				ExpectDeletes: deletes(member("a", "one"), member("a", "two")),
				ExpectCreates: []client.Object{member("a")},
				ExpectEvents:  []rtesting.Event{memberEvent("Deleted", "part-one"), memberEvent("Deleted", "part-two"), memberEvent("Created", "part-a")},
			},
			node:  func(calls *trace) widgetNode { return set(calls, member("a"), member("b")) },
			calls: []string{"desired", "delete ConfigMap", "delete ConfigMap", "create ConfigMap", "reflect a=part-a blue b=part-b blue"},
		},
		"creates under generated names": {
			widgetCase: widgetCase{
				WithReactors:  []rtesting.ReactionFunc{born},
				ExpectCreates: []client.Object{member("a").With(nameless), member("b").With(nameless)},
				ExpectEvents:  []rtesting.Event{memberEvent("Created", "part-001"), memberEvent("Created", "part-002")},
			},
			node: func(calls *trace) widgetNode {
				return set(calls, member("b").With(nameless), member("a").With(nameless))
			},
			calls: []string{"desired", "create ConfigMap", "create ConfigMap", "reflect a=part-001 blue b=part-002 blue"},
		},
		"lists once": {
			widgetCase: widgetCase{
				GivenObjects: []client.Object{givenMember("a"), givenMember("b"), givenMember("c")},
				WithReactors: []rtesting.ReactionFunc{rtesting.CalledAtMostTimes("list", "ConfigMapList", 1)},
			},
			node: func(calls *trace) widgetNode { return set(calls, member("a"), member("b"), member("c")) },
		},
	}.run(t)
}

func TestChildSetTellsKnownChildren(t *testing.T) {
	known := func(calls *trace) *parts {
		node := set(calls)
		node.DesiredChildren = func(ctx context.Context, _ *resources.Widget) ([]*corev1.ConfigMap, error) {
			children := reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](ctx)
			calls.add("known %d, nil %t", len(children), children == nil)
			return children, nil
		}
		return node
	}
	nodeTests{
		"none": {
			node:  func(calls *trace) widgetNode { return known(calls) },
			calls: []string{"known 0, nil false", "reflect"},
		},
		"which stay if they are desired": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenMember("b"), givenMember("a").With(redden)}},
			node:       func(calls *trace) widgetNode { return known(calls) },
			calls:      []string{"known 2, nil false", "reflect a=part-a red b=part-b blue"},
		},
		"outside of a set": {
			node: func(calls *trace) widgetNode {
				return &hooks{reconcile: func(ctx context.Context, _ *resources.Widget) (reconcilers.Result, error) {
					calls.add("nil %t", reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](ctx) == nil)
					return nothing, nil
				}}
			},
			calls: []string{"nil true"},
		},
	}.run(t)
}

// unownedSet finds its children by their labels and has a finalizer, and nothing else.
func unownedSet(calls *trace, desired ...rtesting.Fixture[*corev1.ConfigMap]) *parts {
	node := set(calls, desired...)
	node.Finalizer = "f.io/f"
	node.OurChild = func(_ *resources.Widget, child *corev1.ConfigMap) bool { return child.Labels["part"] != "" }
	node.ListOptions = func(context.Context, *resources.Widget) []client.ListOption {
		return []client.ListOption{client.InNamespace(widgetKey.Namespace)}
	}
	return node
}

func TestChildSetFinalizer(t *testing.T) {
	added, cleared := normal("FinalizerPatched", `Patched finalizer "f.io/f"`), normal("FinalizerPatched", `Patched finalizer "f.io/f"`)
	on := func(w *resources.Widget) { w.Finalizers = []string{"f.io/f"} }
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(member("a"), widget, widgetScheme)}
	nodeTests{
		"is on before the first child, which is not owned": {
			widgetCase: widgetCase{
				WithReactors:   []rtesting.ReactionFunc{born},
				ExpectPatches:  []rtesting.PatchRef{finalizersPatch(`{"metadata":{"finalizers":["f.io/f"],"resourceVersion":"999"}}`)},
				ExpectCreates:  []client.Object{member("a").With(disown)},
				ExpectEvents:   []rtesting.Event{added, memberEvent("Created", "part-a")},
				ExpectResource: widget.With(patchedBy("f.io/f")).Object(),
			},
			node:  func(calls *trace) widgetNode { return unownedSet(calls, member("a").With(disown)) },
			calls: []string{"desired", "patch Widget", "create ConfigMap", "reflect a=part-a blue"},
		},
		"alone has the unowned children found": {
			widgetCase: widgetCase{
				Resource:      widget.With(on).Object(),
				GivenObjects:  []client.Object{givenMember("a").With(disown)},
				ExpectDeletes: deletes(member("a")), ExpectEvents: []rtesting.Event{memberEvent("Deleted", "part-a")},
			},
			node:  func(calls *trace) widgetNode { return unownedSet(calls) },
			calls: []string{"desired", "delete ConfigMap", "reflect a=none"},
		},
		"stays while a child is there, and goes after it": {
			widgetCase: widgetCase{
				Resource:      widget.With(terminating("f.io/f")).Object(),
				GivenObjects:  []client.Object{givenMember("a").With(disown)},
				ExpectDeletes: deletes(member("a")), ExpectEvents: []rtesting.Event{memberEvent("Deleted", "part-a")},
				ExpectTracks: tracks,
				AdditionalReconciles: []widgetCase{
					{
						Name: "being deleted", Resource: widget.With(terminating("f.io/f")).Object(), ExpectTracks: tracks,
						GivenObjects: []client.Object{givenMember("a").With(disown, func(child *corev1.ConfigMap) {
							child.DeletionTimestamp, child.Finalizers = &child.CreationTimestamp, []string{"slow.io/slow"}
						})},
					},
					{
						Name: "gone", Resource: widget.With(terminating("f.io/f")).Object(),
						ExpectPatches:  []rtesting.PatchRef{finalizersPatch(`{"metadata":{"finalizers":null,"resourceVersion":"999"}}`)},
						ExpectEvents:   []rtesting.Event{cleared},
						ExpectResource: widget.With(terminating(), patchedBy()).Object(),
					},
				},
			},
			node: func(calls *trace) widgetNode { return unownedSet(calls, member("a").With(disown)) },
		},
		"stays for a child that only the API server shows": {
			widgetCase: widgetCase{
				Resource:        widget.With(terminating("f.io/f")).Object(),
				APIGivenObjects: []client.Object{givenMember("a").With(disown)},
				ExpectDeletes:   deletes(member("a")), // which finds that it is gone
				ExpectTracks:    tracks,
			},
			node: func(calls *trace) widgetNode { return unownedSet(calls) },
		},
		"is not needed to delete owned children of a terminating resource": {
			widgetCase: widgetCase{
				Resource:      terminatingWidget.Object(),
				GivenObjects:  []client.Object{givenMember("a"), givenMember("b")},
				ExpectDeletes: deletes(member("a"), member("b")),
				ExpectEvents:  []rtesting.Event{memberEvent("Deleted", "part-a"), memberEvent("Deleted", "part-b")},
			},
			node:  func(calls *trace) widgetNode { return set(calls, member("a"), member("b")) },
			calls: []string{"delete ConfigMap", "delete ConfigMap", "reflect"},
		},
	}.run(t)
}

// countedManager counts how often it is set up.
type countedManager struct {
	rtesting.StubObjectManager[*corev1.ConfigMap]
	setUps *int
}

func (m countedManager) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	*m.setUps++
	return nil
}

func TestChildSetSetsItsManagerUpOnce(t *testing.T) {
	setUps := 0
	rtesting.SetupTests{
		"watches the children once": {
			ExpectWatches: []client.Object{&resources.Widget{}, &corev1.ConfigMap{}},
			Events: []rtesting.SetupEvent{
				{Updated: givenMember("a"), ExpectRequests: []reconcilers.Request{widgetRequest}},
				{Deleted: givenMember("b").With(disown)},
			},
		},
	}.Run(t, widgetScheme, func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
		node := set(&trace{})
		node.ChildObjectManager = countedManager{setUps: &setUps}
		return rtesting.SubReconcilerSetup[*resources.Widget](c, node)
	})
	if setUps != 1 {
		t.Errorf("the manager was set up %d times", setUps)
	}
}
