package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		child.UID, child.ResourceVersion = types.UID(child.Name+"-uid"), "999"
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

func TestChildSetMakesChildrenAgree(t *testing.T) {
	nodeTests{
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
				node.OurChild = func(_ *resources.Widget, child *corev1.ConfigMap) bool {
					return child.Labels["part"] == "z"
				}
				return node
			},
			calls: []string{"desired", "delete ConfigMap", "reflect z=none"},
		},
		"creates under generated names": {
			widgetCase: widgetCase{
				ExpectCreates: []client.Object{member("a").With(nameless), member("b").With(nameless)},
				ExpectEvents:  []rtesting.Event{memberEvent("Created", "part-001"), memberEvent("Created", "part-002")},
			},
			node: func(calls *trace) widgetNode {
				return set(calls, member("b").With(nameless), member("a").With(nameless))
			},
			calls: []string{
				"desired",
				"create ConfigMap",
				"create ConfigMap",
				"reflect a=part-001 blue b=part-002 blue",
			},
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

// A deleted child and one that cannot be made have entries, but do not exist.
func TestExistingChildrenOfASet(t *testing.T) {
	child := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	result := partResult{Children: []reconcilers.ChildSetPartialResult[*corev1.ConfigMap]{
		{Id: "a", Child: child("a")}, {Id: "deleted"}, {Id: "forbidden", Err: errBoom}, {Id: "z", Child: child("z")},
	}}
	var names []string
	for _, child := range result.Existing() {
		names = append(names, child.Name)
	}
	if !slices.Equal(names, []string{"a", "z"}) {
		t.Errorf("there are %v", names)
	}
}

// A set that shrinks counts what is left, in the very request that deletes the rest.
func TestASetCountsTheChildrenThatExist(t *testing.T) {
	count := func(_ context.Context, w *resources.Widget, result partResult) {
		w.Status.AddField("children", fmt.Sprint(len(result.Existing())))
	}
	nodeTests{"": {
		node: func(calls *trace) widgetNode {
			node := set(calls, member("a"), member("b"))
			node.ReflectChildrenStatusOnParent = count
			return node
		},
		calls: []string{"desired", "create ConfigMap", "delete ConfigMap"},
		widgetCase: widgetCase{
			GivenObjects:   []client.Object{givenMember("a"), givenMember("z")},
			ExpectResource: widget.With(statusField("children", "2")).Object(),
			ExpectCreates:  []client.Object{member("b")},
			ExpectDeletes:  deletes(member("z")),
			ExpectEvents:   []rtesting.Event{memberEvent("Created", "part-b"), memberEvent("Deleted", "part-z")},
		},
	}}.run(t)
}

func TestChildSetErrors(t *testing.T) {
	invalid := apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "part-b", nil)
	exists := apierrs.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, "part-a")
	failing := func(verb, name string, err error) rtesting.ReactionFunc {
		return rtesting.InduceFailure(verb, "ConfigMap", rtesting.InduceFailureOpts{Name: name, Error: err})
	}
	fails := func(c widgetCase, err error) widgetCase {
		c.ShouldErr, c.Verify = true, returnsBoth(err, nothing)
		return c
	}
	nodeTests{
		"is reflected by its reason only if that is listed": {
			widgetCase: fails(widgetCase{
				WithReactors:  []rtesting.ReactionFunc{failing("create", "part-b", invalid)},
				ExpectCreates: []client.Object{member("b")},
				ExpectEvents: []rtesting.Event{
					warning("CreationFailed", `Failed to create ConfigMap "part-b": `+invalid.Error()),
				},
			}, invalid),
			node: func(calls *trace) widgetNode {
				node := set(calls, member("b"))
				node.ReflectedChildErrorReasons = []metav1.StatusReason{}
				return node
			},
			calls: []string{"desired", "create ConfigMap", "reflect"},
		},
		"since another's object is in the way": {
			widgetCase: widgetCase{
				GivenObjects:    []client.Object{givenMember("a").With(disown)},
				APIGivenObjects: []client.Object{givenMember("a").With(disown)},
				ExpectCreates:   []client.Object{member("a"), member("b")},
				ExpectEvents: []rtesting.Event{
					warning(
						"CreationFailed", `Failed to create ConfigMap "part-a": configmaps "part-a" already exists`,
					),
					memberEvent("Created", "part-b"),
				},
				ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(member("a"), widget, widgetScheme)},
			},
			node: func(calls *trace) widgetNode { return set(calls, member("b"), member("a")) },
			calls: []string{
				"desired",
				"create ConfigMap",
				"create ConfigMap",
				"reflect a=none (AlreadyExists) b=part-b blue",
			},
		},
		"since our own object is in the way, and the cache is behind": {
			widgetCase: fails(widgetCase{
				WithReactors:    []rtesting.ReactionFunc{failing("create", "part-a", exists)},
				APIGivenObjects: []client.Object{givenMember("a")},
				ExpectCreates:   []client.Object{member("a")},
				ExpectEvents: []rtesting.Event{
					warning("CreationFailed", `Failed to create ConfigMap "part-a": `+exists.Error()),
				},
			}, exists),
			node:  func(calls *trace) widgetNode { return set(calls, member("b"), member("a")) },
			calls: []string{"desired", "create ConfigMap", "reflect"},
		},
		"is not silenced by a quiet one of the reflection": {
			widgetCase: widgetCase{
				WithReactors:  []rtesting.ReactionFunc{failing("create", "part-a", errBoom)},
				ExpectCreates: []client.Object{member("a")},
				ExpectEvents:  failedTo("create", "part-a", errBoom),
				ShouldErr:     true, Verify: func(t *testing.T, result reconcilers.Result, err error) {
					returnsBoth(errBoom, nothing)(t, result, err)
					if errors.Is(err, reconcilers.ErrQuiet) {
						t.Errorf("%v is quiet", err)
					}
				},
			},
			node: func(calls *trace) widgetNode {
				node := set(calls, member("a"))
				node.ReflectChildrenStatusOnParentWithError = func(
					context.Context, *resources.Widget, partResult,
				) error {
					return errQuiet
				}
				return node
			},
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

func onItsWay(child *corev1.ConfigMap) {
	child.DeletionTimestamp, child.Finalizers = &child.CreationTimestamp, []string{"slow.io/slow"}
}

func TestTerminatingChildrenAreLeftToGo(t *testing.T) {
	child := func(calls *trace, desired *corev1.ConfigMap) widgetNode {
		return &configMapNode{
			DesiredChild: func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
				return desired, nil
			},
			MergeBeforeUpdate: mergeConfigMap,
			ReflectChildStatusOnParent: func(_ context.Context, _ *resources.Widget, child *corev1.ConfigMap, _ error) {
				if child == nil {
					calls.add("reflect none")
					return
				}
				calls.add("reflect %s", child.Data["color"])
			},
		}
	}
	nodeTests{
		"a child, desired": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap.With(redden, onItsWay)}},
			node:       func(calls *trace) widgetNode { return child(calls, configMap.Object()) },
			calls:      []string{"reflect red"},
		},
		"a child, not desired": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap.With(redden, onItsWay)}},
			node:       func(calls *trace) widgetNode { return child(calls, nil) },
			calls:      []string{"reflect red"},
		},
		"desired": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenMember("a").With(redden, onItsWay)}},
			node:       func(calls *trace) widgetNode { return set(calls, member("a")) },
			calls:      []string{"desired", "reflect a=part-a red"},
		},
		"not desired": {
			widgetCase: widgetCase{GivenObjects: []client.Object{givenMember("a").With(redden, onItsWay)}},
			node:       func(calls *trace) widgetNode { return set(calls) },
			calls:      []string{"desired", "reflect a=part-a red"},
		},
		"beside one that stays": {
			widgetCase: widgetCase{
				GivenObjects: []client.Object{givenMember("a", "old").With(onItsWay), givenMember("a")},
			},
			node:  func(calls *trace) widgetNode { return set(calls, member("a")) },
			calls: []string{"desired", "reflect a=part-a blue"},
		},
	}.run(t)
}
