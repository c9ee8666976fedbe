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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reflectingChild keeps configMap as the child of widget, and records what it is asked.
func reflectingChild(calls *trace) *configMapNode {
	return &configMapNode{
		DesiredChild: func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			calls.add("desired child")
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
				Data:       map[string]string{"color": "blue"},
			}, nil
		},
		ReflectChildStatusOnParent: func(_ context.Context, w *resources.Widget, child *corev1.ConfigMap, err error) {
			name := "nothing"
			if child != nil {
				name = child.Name
			}
			calls.add("reflect %s, %v", name, err)
			w.Status.AddField("child", name)
		},
		ChildObjectManager: &configMaps{MergeBeforeUpdate: mergeConfigMap},
	}
}

// changedChild is reflectingChild with changes.
func changedChild(changes ...func(*configMapNode)) func(*trace) widgetNode {
	return func(calls *trace) widgetNode {
		node := reflectingChild(calls)
		for _, change := range changes {
			change(node)
		}
		return node
	}
}

// desires makes a child that is desired otherwise.
func desires(desired func(*corev1.ConfigMap) (*corev1.ConfigMap, error)) func(*configMapNode) {
	return func(node *configMapNode) {
		usual := node.DesiredChild
		node.DesiredChild = func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			child, err := usual(ctx, w)
			if err != nil {
				return nil, err
			}
			return desired(child)
		}
	}
}

func desiresNothing(*corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, nil }

func failsToDesire(err error) func(*configMapNode) {
	return desires(func(*corev1.ConfigMap) (*corev1.ConfigMap, error) { return nil, err })
}

// withoutOwner makes a child that is found by a label instead of its owner.
func withoutOwner(node *configMapNode) {
	node.SkipOwnerReference = true
	node.ListOptions = func(_ context.Context, w *resources.Widget) []client.ListOption {
		return []client.ListOption{client.MatchingLabels{"widget": w.Name}}
	}
	node.OurChild = func(w *resources.Widget, child *corev1.ConfigMap) bool { return child.Labels["widget"] == w.Name }
	desires(func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		child.Labels = map[string]string{"widget": widgetKey.Name}
		return child, nil
	})(node)
}

func labelled(child *corev1.ConfigMap) {
	child.OwnerReferences = nil
	child.Labels = map[string]string{"widget": widgetKey.Name}
}

func reflecting(name string) *resources.Widget {
	return widget.With(statusField("child", name)).Object()
}

// deleteOf is the delete of obj as it was given, and of what it owns.
func deleteOf(obj client.Object) rtesting.DeleteRef {
	ref := rtesting.NewDeleteRefFromObject(obj, widgetScheme)
	given := obj.DeepCopyObject().(client.Object)
	uid, version := given.GetUID(), given.GetResourceVersion()
	ref.Preconditions = &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
	ref.PropagationPolicy = new(metav1.DeletePropagationBackground)
	return ref
}

var configMapResource = schema.GroupResource{Resource: "configmaps"}

func TestChildReconciler(t *testing.T) {
	created := normal("Created", `Created ConfigMap "gadget"`)
	updated := normal("Updated", `Updated ConfigMap "gadget"`)
	deleted := normal("Deleted", `Deleted ConfigMap "gadget"`)
	outdated := givenConfigMap.With(func(child *corev1.ConfigMap) { child.Data = map[string]string{"color": "red"} })
	extra := givenConfigMap.With(func(child *corev1.ConfigMap) { child.Name, child.UID = "extra", "extra-uid" })
	unrelated := []client.Object{
		givenConfigMap.With(func(c *corev1.ConfigMap) { c.Name, c.UID, c.OwnerReferences = "unowned", "unowned-uid", nil }),
		givenConfigMap.With(func(c *corev1.ConfigMap) {
			c.Name, c.UID = "anothers", "anothers-uid"
			c.OwnerReferences[0].UID = "another-uid"
		}),
		givenConfigMap.With(func(c *corev1.ConfigMap) {
			c.Name, c.UID = "uncontrolled", "uncontrolled-uid"
			c.OwnerReferences[0].Controller = nil
		}),
		givenConfigMap.With(func(c *corev1.ConfigMap) { c.Namespace, c.UID = "elsewhere", "elsewhere-uid" }),
	}
	only := func(name string) func(*configMapNode) {
		return func(node *configMapNode) {
			node.OurChild = func(_ *resources.Widget, child *corev1.ConfigMap) bool { return child.Name == name }
		}
	}

	nodeTests{
		"in sync": {
			node:  changedChild(),
			calls: []string{"desired child", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap},
				ExpectResource: reflecting("gadget"),
			},
		},
		"in sync, among others": {
			node:  changedChild(),
			calls: []string{"desired child", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   append([]client.Object{givenConfigMap}, unrelated...),
				ExpectResource: reflecting("gadget"),
			},
		},
		"in sync, with fields of others": {
			node:  changedChild(),
			calls: []string{"desired child", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap.With(func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"a": "b"} })},
				ExpectResource: reflecting("gadget"),
			},
		},
		"created": {
			node:  changedChild(),
			calls: []string{"desired child", "create ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   unrelated,
				ExpectResource: reflecting("gadget"),
				ExpectCreates:  []client.Object{configMap},
				ExpectEvents:   []rtesting.Event{created},
			},
		},
		"created, with a generated name": {
			node: changedChild(desires(func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				child.Name, child.GenerateName = "", "gadget-"
				return child, nil
			})),
			calls: []string{"desired child", "create ConfigMap", "reflect gadget-001, <nil>"},
			widgetCase: widgetCase{
				ExpectResource: reflecting("gadget-001"),
				ExpectCreates:  []client.Object{configMap.With(func(c *corev1.ConfigMap) { c.Name, c.GenerateName = "", "gadget-" })},
				ExpectEvents:   []rtesting.Event{normal("Created", `Created ConfigMap "gadget-001"`)},
			},
		},
		"created, with a controller of its own": {
			node: changedChild(desires(func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				child.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "p-uid", Controller: new(true)}}
				return child, nil
			})),
			calls: []string{"desired child", "create ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				ExpectResource: reflecting("gadget"),
				ExpectCreates: []client.Object{configMap.With(func(c *corev1.ConfigMap) {
					c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "p-uid", Controller: new(true)}}
				})},
				ExpectEvents: []rtesting.Event{created},
				Replays:      rtesting.NoReplays("its owner is not there, so it is collected after each request"),
			},
		},
		"created, with another owner": {
			node: changedChild(desires(func(child *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				child.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "p-uid"}}
				return child, nil
			})),
			calls: []string{"desired child", "create ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				ExpectResource: reflecting("gadget"),
				ExpectCreates: []client.Object{configMap.With(func(c *corev1.ConfigMap) {
					c.OwnerReferences = []metav1.OwnerReference{
						{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "p-uid"}, controlledBy(widget.Object()),
					}
				})},
				ExpectEvents: []rtesting.Event{created},
			},
		},
		"created, although not ours": {
			node:  changedChild(only("another name")),
			calls: []string{"desired child", "create ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				ExpectResource: reflecting("gadget"),
				ExpectCreates:  []client.Object{configMap},
				ExpectEvents:   []rtesting.Event{created},
			},
		},
		"updated": {
			node:  changedChild(),
			calls: []string{"desired child", "update ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   append([]client.Object{outdated}, unrelated...),
				ExpectResource: reflecting("gadget"),
				ExpectUpdates:  []client.Object{givenConfigMap},
				ExpectEvents:   []rtesting.Event{updated},
			},
		},
		"deleted": {
			node:  changedChild(desires(desiresNothing)),
			calls: []string{"desired child", "delete ConfigMap", "reflect nothing, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   append([]client.Object{givenConfigMap}, unrelated...),
				ExpectResource: reflecting("nothing"),
				ExpectDeletes:  []rtesting.DeleteRef{deleteOf(givenConfigMap)},
				ExpectEvents:   []rtesting.Event{deleted},
			},
		},
		"nothing is desired and nothing there": {
			node:       changedChild(desires(desiresNothing)),
			calls:      []string{"desired child", "reflect nothing, <nil>"},
			widgetCase: widgetCase{ExpectResource: reflecting("nothing")},
		},
		"of several, OurChild tells which": {
			node:  changedChild(only("gadget")),
			calls: []string{"desired child", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{extra, givenConfigMap},
				ExpectResource: reflecting("gadget"),
			},
		},
		"several, all are deleted and one created": {
			node:  changedChild(),
			calls: []string{"desired child", "delete ConfigMap", "delete ConfigMap", "create ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap, extra},
				ExpectResource: reflecting("gadget"),
				ExpectDeletes:  []rtesting.DeleteRef{deleteOf(extra), deleteOf(givenConfigMap)},
				ExpectCreates:  []client.Object{configMap},
				ExpectEvents:   []rtesting.Event{normal("Deleted", `Deleted ConfigMap "extra"`), deleted, created},
				// If only one of them could be deleted, the other is in sync.
				Replays: rtesting.Replays{Ignore: []string{
					"ConfigMap default/gadget: created", "ConfigMap default/gadget: deleted",
				}},
			},
		},
		"several, which cannot be deleted": {
			node:  changedChild(),
			calls: []string{"desired child", "delete ConfigMap"},
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{givenConfigMap, extra},
				WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("delete", "ConfigMap", rtesting.InduceFailureOpts{Error: errBoom})},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(extra)},
				ExpectEvents:  failedTo("delete", "extra", errBoom),
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		"several, nothing is desired": {
			node:  changedChild(desires(desiresNothing)),
			calls: []string{"desired child", "delete ConfigMap", "delete ConfigMap", "reflect nothing, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap, extra},
				ExpectResource: reflecting("nothing"),
				ExpectDeletes:  []rtesting.DeleteRef{deleteOf(extra), deleteOf(givenConfigMap)},
				ExpectEvents:   []rtesting.Event{normal("Deleted", `Deleted ConfigMap "extra"`), deleted},
			},
		},
		// What is desired is asked before anything is deleted, and nothing is if that is not known.
		"several, what is desired is not known": {
			node:  changedChild(failsToDesire(errBoom)),
			calls: []string{"desired child"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{givenConfigMap, extra},
				ShouldErr:    true,
				Verify:       returns(errBoom),
			},
		},
		"what is desired is not known": {
			node:       changedChild(failsToDesire(errBoom)),
			calls:      []string{"desired child"},
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap}, ShouldErr: true, Verify: returns(errBoom)},
		},
		"what is desired is invalid": {
			node:       changedChild(failsToDesire(apierrs.NewForbidden(configMapResource, "gadget", errBoom))),
			calls:      []string{"desired child", `reflect nothing, configmaps "gadget" is forbidden: boom`},
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap}, ExpectResource: reflecting("nothing")},
		},
		"only the status is asked for": {
			node:  changedChild(failsToDesire(fmt.Errorf("paused: %w", reconcilers.OnlyReconcileChildStatus))),
			calls: []string{"desired child", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{outdated},
				ExpectResource: reflecting("gadget"),
			},
		},
		// Where there is no child, none is reflected, rather than a blank one.
		"only the status is asked for, of nothing": {
			node:       changedChild(failsToDesire(reconcilers.OnlyReconcileChildStatus)),
			calls:      []string{"desired child", "reflect nothing, <nil>"},
			widgetCase: widgetCase{ExpectResource: reflecting("nothing")},
		},
		// To look at the status deletes nothing.
		"only the status is asked for, of several": {
			node: changedChild(failsToDesire(reconcilers.OnlyReconcileChildStatus), func(node *configMapNode) {
				node.ReflectChildStatusOnParent = func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {}
			}),
			calls:      []string{"desired child"},
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap, extra}},
		},
		"cannot be listed": {
			node:  changedChild(),
			calls: []string{},
			widgetCase: widgetCase{
				WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("list", "ConfigMapList",
					rtesting.InduceFailureOpts{Error: apierrs.NewForbidden(configMapResource, "", errBoom)})},
				ShouldErr: true,
				Verify: func(t *testing.T, _ reconcilers.Result, err error) {
					if !apierrs.IsForbidden(err) {
						t.Errorf("returned %v, want that it is forbidden", err)
					}
				},
			},
		},
		"terminating": {
			node:  changedChild(),
			calls: []string{"delete ConfigMap"},
			widgetCase: widgetCase{
				Resource:      terminatingWidget.Object(),
				GivenObjects:  []client.Object{givenConfigMap},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap)},
				ExpectEvents:  []rtesting.Event{deleted},
			},
		},
		"terminating, several": {
			node:  changedChild(),
			calls: []string{"delete ConfigMap", "delete ConfigMap"},
			widgetCase: widgetCase{
				Resource:      terminatingWidget.Object(),
				GivenObjects:  []client.Object{givenConfigMap, extra},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(extra), deleteOf(givenConfigMap)},
				ExpectEvents:  []rtesting.Event{normal("Deleted", `Deleted ConfigMap "extra"`), deleted},
			},
		},
		"terminating, nothing is left": {
			node:       changedChild(),
			calls:      []string{},
			widgetCase: widgetCase{Resource: terminatingWidget.Object()},
		},
		"terminating, the child is too": {
			node:  changedChild(),
			calls: []string{},
			widgetCase: widgetCase{
				Resource:     terminatingWidget.Object(),
				GivenObjects: []client.Object{givenConfigMap.With(leaving)},
			},
		},
		"terminating, the child cannot be deleted": {
			node:  changedChild(),
			calls: []string{"delete ConfigMap"},
			widgetCase: widgetCase{
				Resource:     terminatingWidget.Object(),
				GivenObjects: []client.Object{givenConfigMap},
				WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("delete", "ConfigMap",
					rtesting.InduceFailureOpts{Error: apierrs.NewForbidden(configMapResource, "gadget", errBoom)})},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap)},
				ExpectEvents:  []rtesting.Event{warning("DeleteFailed", `Failed to delete ConfigMap "gadget": configmaps "gadget" is forbidden: boom`)},
				ShouldErr:     true,
			},
		},
		"without an owner reference, created": {
			node:  changedChild(withoutOwner),
			calls: []string{"desired child", "create ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{givenConfigMap.With(labelled, func(c *corev1.ConfigMap) {
					c.Name = "anothers"
					c.Labels["widget"] = "another"
				})},
				ExpectResource: reflecting("gadget"),
				ExpectCreates:  []client.Object{configMap.With(labelled)},
				ExpectEvents:   []rtesting.Event{created},
			},
		},
		"without an owner reference, in sync": {
			node:       changedChild(withoutOwner),
			calls:      []string{"desired child", "reflect gadget, <nil>"},
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap.With(labelled)}, ExpectResource: reflecting("gadget")},
		},
		"without an owner reference, deleted": {
			node:  changedChild(withoutOwner),
			calls: []string{"delete ConfigMap"},
			widgetCase: widgetCase{
				Resource:      terminatingWidget.Object(),
				GivenObjects:  []client.Object{givenConfigMap.With(labelled)},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap)},
				ExpectEvents:  []rtesting.Event{deleted},
			},
		},
		"one that is being deleted is left to go, desired": {
			node:  changedChild(),
			calls: []string{"desired child", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{givenConfigMap.With(coloured("red"), leaving)}, ExpectResource: reflecting("gadget"),
			},
		},
		"one that is being deleted is left to go, not desired": {
			node:  changedChild(desires(desiresNothing)),
			calls: []string{"desired child", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{givenConfigMap.With(coloured("red"), leaving)}, ExpectResource: reflecting("gadget"),
			},
		},
		// What is on its way out is no second child.
		"one that is being deleted makes way": {
			node:  changedChild(),
			calls: []string{"desired child", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{extra.With(leaving), givenConfigMap},
				ExpectResource: reflecting("gadget"),
			},
		},
		"the reflection asks for a delay": {
			node: changedChild(func(node *configMapNode) {
				node.ReflectChildStatusOnParentWithResult = func(context.Context, *resources.Widget, *corev1.ConfigMap, error) (reconcilers.Result, error) {
					return minute, nil
				}
			}),
			calls:      []string{"desired child"},
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap}, ExpectedResult: minute},
		},
		"the reflection asks for a delay, and fails": {
			node: changedChild(func(node *configMapNode) {
				node.ReflectChildStatusOnParentWithResult = func(context.Context, *resources.Widget, *corev1.ConfigMap, error) (reconcilers.Result, error) {
					return minute, errBoom
				}
			}),
			calls: []string{"desired child"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{givenConfigMap}, ShouldErr: true, Verify: returnsBoth(errBoom, minute),
			},
		},
		"the reflection fails": {
			node: changedChild(func(node *configMapNode) {
				node.ReflectChildStatusOnParentWithError = func(context.Context, *resources.Widget, *corev1.ConfigMap, error) error {
					return errBoom
				}
			}),
			calls:      []string{"desired child"},
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap}, ShouldErr: true, Verify: returns(errBoom)},
		},
	}.run(t)
}
