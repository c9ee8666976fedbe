package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	configMapSet = reconcilers.ChildSetReconciler[*resources.Widget, *corev1.ConfigMap, *corev1.ConfigMapList]
	partResult   = reconcilers.ChildSetResult[*corev1.ConfigMap]
)

const setLabel = "part"

// part is a ConfigMap of the set with the given identity, as it is desired.
func part(id string, changes ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	return configMap.With(func(c *corev1.ConfigMap) {
		c.Name = "gadget-" + id
		c.Labels = map[string]string{setLabel: id}
	}).With(changes...).Object()
}

// givenPart is part in the cluster.
func givenPart(id string, changes ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	return part(id, append([]func(*corev1.ConfigMap){func(c *corev1.ConfigMap) {
		c.UID, c.ResourceVersion = types.UID(c.Name+"-uid"), "999"
		c.CreationTimestamp = metav1.NewTime(time.UnixMilli(1000))
	}}, changes...)...)
}

func renamed(name string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) { c.Name, c.UID = name, types.UID(name+"-uid") }
}

func coloured(color string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": color} }
}

func ownerless(c *corev1.ConfigMap) { c.OwnerReferences = nil }

func leaving(c *corev1.ConfigMap) {
	c.DeletionTimestamp = new(metav1.NewTime(time.UnixMilli(2000)))
	c.Finalizers = []string{theirs}
}

// reflectingSet keeps the parts with the given identities, and records what it is asked.
func reflectingSet(calls *trace, ids ...string) *configMapSet {
	return &configMapSet{
		DesiredChildren: func(ctx context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
			calls.add("desired children of %d known", len(reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](ctx)))
			var desired []*corev1.ConfigMap
			for _, id := range ids {
				child := part(id)
				child.OwnerReferences = nil
				desired = append(desired, child)
			}
			return desired, nil
		},
		ReflectChildrenStatusOnParent: func(
			_ context.Context, w *resources.Widget, result partResult,
		) {
			var parts []string
			for _, child := range result.Children {
				name := "nothing"
				if child.Child != nil {
					name = child.Child.Name
				}
				part := fmt.Sprintf("%s: %s", child.Id, name)
				if child.Err != nil {
					part += fmt.Sprintf(" (%v)", child.Err)
				}
				parts = append(parts, part)
			}
			calls.add("reflect [%s]", strings.Join(parts, ", "))
		},
		ChildObjectManager: &configMaps{MergeBeforeUpdate: mergeConfigMap},
		IdentifyChild:      func(child *corev1.ConfigMap) string { return child.Labels[setLabel] },
	}
}

// changedSet is reflectingSet with changes.
func changedSet(ids []string, changes ...func(*configMapSet)) func(*trace) widgetNode {
	return func(calls *trace) widgetNode {
		node := reflectingSet(calls, ids...)
		for _, change := range changes {
			change(node)
		}
		return node
	}
}

func setFailsToDesire(err error) func(*configMapSet) {
	return func(node *configMapSet) {
		usual := node.DesiredChildren
		node.DesiredChildren = func(ctx context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
			_, _ = usual(ctx, w)
			return nil, err
		}
	}
}

func createdEvent(name string) rtesting.Event {
	return normal("Created", fmt.Sprintf("Created ConfigMap %q", name))
}

func updatedEvent(name string) rtesting.Event {
	return normal("Updated", fmt.Sprintf("Updated ConfigMap %q", name))
}

func deletedEvent(name string) rtesting.Event {
	return normal("Deleted", fmt.Sprintf("Deleted ConfigMap %q", name))
}

func TestChildSetReconciler(t *testing.T) {
	none := []string{}
	abc := []string{"c", "a", "b"}
	forbidden := apierrs.NewForbidden(configMapResource, "gadget-b", errBoom)
	exists := apierrs.NewAlreadyExists(configMapResource, "gadget-a")
	nameless := func(c *corev1.ConfigMap) { c.Name, c.GenerateName = "", "gadget-" }
	failing := func(verb, name string, err error) rtesting.ReactionFunc {
		return rtesting.InduceFailure(verb, "ConfigMap", rtesting.InduceFailureOpts{Name: name, Error: err})
	}
	// Beside the children there are objects without an owner, and of another.
	given := func(children ...*corev1.ConfigMap) []client.Object {
		objects := []client.Object{
			givenConfigMap.With(renamed("unowned"), ownerless),
			givenConfigMap.With(renamed("anothers"), func(c *corev1.ConfigMap) { c.OwnerReferences[0].UID = "another" }),
		}
		for _, child := range children {
			objects = append(objects, child)
		}
		return objects
	}

	nodeTests{
		"created, in the order of the identities": {
			node: changedSet(abc),
			calls: []string{
				"desired children of 0 known", "create ConfigMap", "create ConfigMap", "create ConfigMap",
				"reflect [a: gadget-a, b: gadget-b, c: gadget-c]",
			},
			widgetCase: widgetCase{
				GivenObjects:  given(),
				ExpectCreates: []client.Object{part("a"), part("b"), part("c")},
				ExpectEvents: []rtesting.Event{
					createdEvent("gadget-a"),
					createdEvent("gadget-b"),
					createdEvent("gadget-c"),
				},
			},
		},
		"in sync": {
			node:       changedSet(abc),
			calls:      []string{"desired children of 3 known", "reflect [a: gadget-a, b: gadget-b, c: gadget-c]"},
			widgetCase: widgetCase{GivenObjects: given(givenPart("a"), givenPart("b"), givenPart("c"))},
		},
		"one is created, one updated, one deleted": {
			node: changedSet([]string{"a", "b"}),
			calls: []string{
				"desired children of 2 known", "create ConfigMap", "update ConfigMap", "delete ConfigMap",
				"reflect [a: gadget-a, b: gadget-b, x: nothing]",
			},
			widgetCase: widgetCase{
				GivenObjects:  given(givenPart("b", coloured("red")), givenPart("x")),
				ExpectCreates: []client.Object{part("a")},
				ExpectUpdates: []client.Object{givenPart("b")},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenPart("x"))},
				ExpectEvents: []rtesting.Event{
					createdEvent("gadget-a"),
					normal("Updated", `Updated ConfigMap "gadget-b"`),
					deletedEvent("gadget-x"),
				},
			},
		},
		"a known child without an identity is deleted, first": {
			node: changedSet([]string{"a"}),
			calls: []string{
				"desired children of 1 known", "delete ConfigMap", "create ConfigMap", "reflect [: nothing, a: gadget-a]",
			},
			widgetCase: widgetCase{
				GivenObjects:  given(givenPart("x", func(c *corev1.ConfigMap) { c.Labels = nil })),
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenPart("x"))},
				ExpectCreates: []client.Object{part("a")},
				ExpectEvents:  []rtesting.Event{deletedEvent("gadget-x"), createdEvent("gadget-a")},
			},
		},
		"several with one identity are deleted, and one is created": {
			node: changedSet([]string{"a", "b"}),
			calls: []string{
				"desired children of 3 known", "delete ConfigMap", "delete ConfigMap", "create ConfigMap",
				"reflect [a: gadget-a, b: gadget-b]",
			},
			widgetCase: widgetCase{
				GivenObjects: given(givenPart("a"), givenPart("a", renamed("twin")), givenPart("b")),
				ExpectDeletes: []rtesting.DeleteRef{
					deleteOf(givenPart("a")),
					deleteOf(givenPart("a", renamed("twin"))),
				},
				ExpectCreates: []client.Object{part("a")},
				ExpectEvents: []rtesting.Event{
					deletedEvent("gadget-a"),
					deletedEvent("twin"),
					createdEvent("gadget-a"),
				},
				// If only one of them could be deleted, the other is in sync.
				Replays: rtesting.Replays{Ignore: []string{"ConfigMap default/gadget-a", "ConfigMap default/twin"}},
			},
		},
		"one that is being deleted makes way for the other of its identity": {
			node:       changedSet([]string{"a"}),
			calls:      []string{"desired children of 2 known", "reflect [a: twin]"},
			widgetCase: widgetCase{GivenObjects: given(givenPart("a", leaving), givenPart("a", renamed("twin")))},
		},
		"nothing is desired and nothing there": {
			node:       changedSet(none),
			calls:      []string{"desired children of 0 known", "reflect []"},
			widgetCase: widgetCase{GivenObjects: given()},
		},
		"what is desired is not known": {
			node:       changedSet(abc, setFailsToDesire(errBoom)),
			calls:      []string{"desired children of 1 known"},
			widgetCase: widgetCase{GivenObjects: given(givenPart("a")), ShouldErr: true, Verify: returns(errBoom)},
		},
		"only the status is asked for": {
			node:  changedSet(abc, setFailsToDesire(fmt.Errorf("paused: %w", reconcilers.OnlyReconcileChildStatus))),
			calls: []string{"desired children of 3 known", "reflect [a: gadget-a, x: gadget-x]"},
			widgetCase: widgetCase{
				GivenObjects: given(givenPart("a", coloured("red")), givenPart("a", renamed("twin")), givenPart("x")),
			},
		},
		"only the status is asked for, of nothing": {
			node:  changedSet(abc, setFailsToDesire(reconcilers.OnlyReconcileChildStatus)),
			calls: []string{"desired children of 0 known", "reflect []"},
		},
		"a desired child has no identity": {
			node:  changedSet([]string{"a", ""}),
			calls: []string{"desired children of 1 known"},
			widgetCase: widgetCase{
				GivenObjects: given(givenPart("x")),
				ShouldErr:    true,
				Verify:       returnsText("desired child id may not be empty"),
			},
		},
		"two desired children have one identity": {
			node:  changedSet([]string{"a", "b", "a"}),
			calls: []string{"desired children of 1 known"},
			widgetCase: widgetCase{
				GivenObjects: given(givenPart("x")),
				ShouldErr:    true,
				Verify:       returnsText("duplicate child id found: a"),
			},
		},
		"a desired child is nil": {
			node: changedSet(abc, func(node *configMapSet) {
				node.DesiredChildren = func(context.Context, *resources.Widget) ([]*corev1.ConfigMap, error) {
					return []*corev1.ConfigMap{part("a"), nil}, nil
				}
			}),
			calls:      []string{},
			widgetCase: widgetCase{ShouldErr: true, Verify: returnsText("desired child 1 is nil")},
		},
		"an error that is reflected does not keep the others waiting": {
			node: changedSet(abc),
			calls: []string{
				"desired children of 0 known", "create ConfigMap", "create ConfigMap", "create ConfigMap",
				`reflect [a: gadget-a, b: nothing (configmaps "gadget-b" is forbidden: boom), c: gadget-c]`,
			},
			widgetCase: widgetCase{
				WithReactors: []rtesting.ReactionFunc{
					failing("create", "gadget-b", forbidden),
				},
				ExpectCreates: []client.Object{part("a"), part("b"), part("c")},
				ExpectEvents: []rtesting.Event{
					createdEvent("gadget-a"),
					warning(
						"CreationFailed", `Failed to create ConfigMap "gadget-b": configmaps "gadget-b" is forbidden: boom`,
					),
					createdEvent("gadget-c"),
				},
			},
		},
		"an error that is returned stops the rest, and what came before is reflected": {
			node: changedSet(abc),
			calls: []string{
				"desired children of 0 known", "create ConfigMap", "create ConfigMap", "reflect [a: gadget-a]",
			},
			widgetCase: widgetCase{
				WithReactors: []rtesting.ReactionFunc{
					failing("create", "gadget-b", errBoom),
				},
				ExpectCreates: []client.Object{part("a"), part("b")},
				ExpectEvents: []rtesting.Event{
					createdEvent("gadget-a"),
					warning("CreationFailed", `Failed to create ConfigMap "gadget-b": boom`),
				},
				ShouldErr: true,
				Verify:    returns(errBoom),
			},
		},
		"with ContinueOnError all are tried, and what failed is reflected, too": {
			node: changedSet(abc, func(set *configMapSet) { set.ContinueOnError = true }),
			calls: []string{
				"desired children of 0 known", "create ConfigMap", "create ConfigMap", "create ConfigMap",
				"reflect [a: gadget-a, b: nothing (boom), c: gadget-c]",
			},
			widgetCase: widgetCase{
				WithReactors: []rtesting.ReactionFunc{
					failing("create", "gadget-b", errBoom),
				},
				ExpectCreates: []client.Object{part("a"), part("b"), part("c")},
				ExpectEvents: []rtesting.Event{
					createdEvent("gadget-a"),
					warning("CreationFailed", `Failed to create ConfigMap "gadget-b": boom`),
					createdEvent("gadget-c"),
				},
				ShouldErr: true,
				Verify:    returns(errBoom),
			},
		},
		"the reflection fails too": {
			node: changedSet([]string{"a"}, failsToReflect),
			widgetCase: widgetCase{
				WithReactors: []rtesting.ReactionFunc{
					rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{Error: errBoom}),
				},
				ExpectCreates: []client.Object{part("a")},
				ExpectEvents:  failedTo("create", "gadget-a", errBoom),
				ShouldErr:     true,
				Verify: func(t *testing.T, result reconcilers.Result, err error) {
					returns(errBoom)(t, result, err)
					returns(errReflect)(t, result, err)
				},
			},
		},
		"the reflection asks for a delay": {
			node: changedSet([]string{"a"}, func(node *configMapSet) {
				node.ReflectChildrenStatusOnParentWithResult = func(
					context.Context, *resources.Widget, partResult,
				) (reconcilers.Result, error) {
					return minute, nil
				}
			}),
			widgetCase: widgetCase{GivenObjects: given(givenPart("a")), ExpectedResult: minute},
		},
		"only the status is asked for, and the children beside it do not count": {
			node: changedSet(nil, func(node *configMapSet) {
				node.DesiredChildren = func(context.Context, *resources.Widget) ([]*corev1.ConfigMap, error) {
					return []*corev1.ConfigMap{part("z")}, reconcilers.OnlyReconcileChildStatus
				}
			}),
			calls:      []string{"reflect [a: gadget-a]"},
			widgetCase: widgetCase{GivenObjects: given(givenPart("a"))},
		},
		"what OurChild does not select stays": {
			node: changedSet(none, func(node *configMapSet) {
				node.OurChild = func(_ *resources.Widget, child *corev1.ConfigMap) bool {
					return child.Labels[setLabel] == "z"
				}
			}),
			calls: []string{"desired children of 1 known", "delete ConfigMap", "reflect [z: nothing]"},
			widgetCase: widgetCase{
				GivenObjects:  given(givenPart("a"), givenPart("z")),
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenPart("z"))},
				ExpectEvents:  []rtesting.Event{deletedEvent("gadget-z")},
			},
		},
		"created under generated names": {
			node: changedSet(nil, func(node *configMapSet) {
				node.DesiredChildren = func(context.Context, *resources.Widget) ([]*corev1.ConfigMap, error) {
					return []*corev1.ConfigMap{part("b", nameless), part("a", nameless)}, nil
				}
			}),
			calls: []string{"create ConfigMap", "create ConfigMap", "reflect [a: gadget-001, b: gadget-002]"},
			widgetCase: widgetCase{
				ExpectCreates: []client.Object{part("a", nameless), part("b", nameless)},
				ExpectEvents:  []rtesting.Event{createdEvent("gadget-001"), createdEvent("gadget-002")},
			},
		},
		"one that is being deleted is left to go, desired": {
			node:       changedSet([]string{"a"}),
			calls:      []string{"desired children of 1 known", "reflect [a: gadget-a]"},
			widgetCase: widgetCase{GivenObjects: given(givenPart("a", coloured("red"), leaving))},
		},
		"one that is being deleted is left to go, not desired": {
			node:       changedSet(none),
			calls:      []string{"desired children of 1 known", "reflect [a: gadget-a]"},
			widgetCase: widgetCase{GivenObjects: given(givenPart("a", coloured("red"), leaving))},
		},
		"an error whose reason is not listed is returned": {
			node: changedSet([]string{"b"}, func(node *configMapSet) {
				node.ReflectedChildErrorReasons = []metav1.StatusReason{}
			}),
			calls: []string{"desired children of 0 known", "create ConfigMap", "reflect []"},
			widgetCase: widgetCase{
				WithReactors:  []rtesting.ReactionFunc{failing("create", "gadget-b", forbidden)},
				ExpectCreates: []client.Object{part("b")},
				ExpectEvents:  failedTo("create", "gadget-b", forbidden),
				ShouldErr:     true, Verify: returnsBoth(forbidden, nothing),
			},
		},
		"the object of another is in the way": {
			node: changedSet([]string{"b", "a"}),
			calls: []string{
				"desired children of 0 known", "create ConfigMap", "create ConfigMap",
				`reflect [a: nothing (configmaps "gadget-a" already exists), b: gadget-b]`,
			},
			widgetCase: widgetCase{
				GivenObjects:    []client.Object{givenPart("a", ownerless)},
				APIGivenObjects: []client.Object{givenPart("a", ownerless)},
				ExpectCreates:   []client.Object{part("a"), part("b")},
				ExpectEvents: []rtesting.Event{
					warning(
						"CreationFailed", `Failed to create ConfigMap "gadget-a": configmaps "gadget-a" already exists`,
					),
					createdEvent("gadget-b"),
				},
				ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(part("a"), widget, widgetScheme)},
			},
		},
		"our own object is in the way, and the cache is behind": {
			node:  changedSet([]string{"b", "a"}),
			calls: []string{"desired children of 0 known", "create ConfigMap", "reflect []"},
			widgetCase: widgetCase{
				WithReactors:    []rtesting.ReactionFunc{failing("create", "gadget-a", exists)},
				APIGivenObjects: []client.Object{givenPart("a")},
				ExpectCreates:   []client.Object{part("a")},
				ExpectEvents:    failedTo("create", "gadget-a", exists),
				ShouldErr:       true, Verify: returnsBoth(exists, nothing),
			},
		},
		"an error is not silenced by a quiet one of the reflection": {
			node: changedSet([]string{"a"}, func(node *configMapSet) {
				node.ReflectChildrenStatusOnParentWithError = func(context.Context, *resources.Widget, partResult) error {
					return errQuiet
				}
			}),
			widgetCase: widgetCase{
				WithReactors:  []rtesting.ReactionFunc{failing("create", "gadget-a", errBoom)},
				ExpectCreates: []client.Object{part("a")},
				ExpectEvents:  failedTo("create", "gadget-a", errBoom),
				ShouldErr:     true, Verify: func(t *testing.T, result reconcilers.Result, err error) {
					returnsBoth(errBoom, nothing)(t, result, err)
					if errors.Is(err, reconcilers.ErrQuiet) {
						t.Errorf("returned the quiet error %v, want one that is not quiet", err)
					}
				},
			},
		},
		"cannot be listed": {
			node:  changedSet(abc),
			calls: []string{},
			widgetCase: widgetCase{
				WithReactors: []rtesting.ReactionFunc{
					rtesting.InduceFailure("list", "ConfigMapList", rtesting.InduceFailureOpts{Error: errBoom}),
				},
				ShouldErr: true,
				Verify:    returns(errBoom),
			},
		},
		"terminating": {
			node:  changedSet(abc),
			calls: []string{"delete ConfigMap", "delete ConfigMap", "reflect []"},
			widgetCase: widgetCase{
				Resource:      terminatingWidget.Object(),
				GivenObjects:  given(givenPart("a"), givenPart("x")),
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenPart("a")), deleteOf(givenPart("x"))},
				ExpectEvents:  []rtesting.Event{deletedEvent("gadget-a"), deletedEvent("gadget-x")},
			},
		},
	}.run(t)
}

var errReflect = fmt.Errorf("cannot be reflected")

func failsToReflect(node *configMapSet) {
	node.ReflectChildrenStatusOnParentWithError = func(
		context.Context, *resources.Widget, partResult,
	) error {
		return errReflect
	}
}

// withConfig runs the node with a changed config.
func withConfig(change func(*reconcilers.Config)) func(func(*trace) widgetNode) func(*trace) widgetNode {
	return func(node func(*trace) widgetNode) func(*trace) widgetNode {
		return func(calls *trace) widgetNode {
			return &reconcilers.WithConfig[*resources.Widget]{
				Config: func(_ context.Context, config reconcilers.Config) (reconcilers.Config, error) {
					change(&config)
					return config, nil
				},
				Reconciler: node(calls),
			}
		}
	}
}

var withoutTracker = withConfig(func(config *reconcilers.Config) { config.Tracker = nil })

func returnsText(text string) rtesting.VerifyFunc {
	return func(t *testing.T, _ reconcilers.Result, err error) {
		t.Helper()
		if err == nil || err.Error() != text {
			t.Errorf("returned %v, expected %s", err, text)
		}
	}
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
		t.Errorf("there are %v, want a and z", names)
	}
}
