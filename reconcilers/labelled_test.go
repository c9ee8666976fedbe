package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// childOf labels a child as that of a node.
func childOf(node string) func(*corev1.ConfigMap) {
	return func(child *corev1.ConfigMap) {
		labels := map[string]string{reconcilers.NodeLabel: node}
		for key, value := range child.Labels {
			labels[key] = value
		}
		child.Labels = labels
	}
}

// Only the children with the label of the node are its own, and those without a label that have a desired name.
func TestLabelledChildren(t *testing.T) {
	labels := func(node *configMapNode) {
		node.Name, node.LabelChildren = "Settings", true
		node.ChildObjectManager, node.MergeBeforeUpdate = nil, func(current, desired *corev1.ConfigMap) { current.Data = desired.Data }
	}
	labelsSet := func(node *configMapSet) {
		node.Name, node.LabelChildren = "Settings", true
		node.ChildObjectManager, node.MergeBeforeUpdate = nil, func(current, desired *corev1.ConfigMap) { current.Data = desired.Data }
	}
	other := func(child *corev1.ConfigMap) { child.Name, child.UID = "other", "other-uid" }
	exists := apierrs.NewAlreadyExists(configMapResource, "gadget")
	inTheWay := givenConfigMap.With(childOf("Another"))
	nodeTests{
		"created": {
			node:  changedChild(labels),
			calls: []string{"desired child", "create ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap.With(childOf("Another"), other), givenConfigMap.With(other, renamed("third"))},
				ExpectResource: reflecting("gadget"),
				ExpectCreates:  []client.Object{configMap.With(childOf("Settings"))},
				ExpectEvents:   []rtesting.Event{createdEvent("gadget")},
			},
		},
		"as desired": {
			node:       changedChild(labels),
			calls:      []string{"desired child", "reflect gadget, <nil>"},
			widgetCase: widgetCase{GivenObjects: []client.Object{givenConfigMap.With(childOf("Settings"))}, ExpectResource: reflecting("gadget")},
		},
		"made before children were labelled": {
			node:  changedChild(labels),
			calls: []string{"desired child", "update ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap},
				ExpectResource: reflecting("gadget"),
				ExpectUpdates:  []client.Object{givenConfigMap.With(childOf("Settings"))},
				ExpectEvents:   []rtesting.Event{normal("Updated", `Updated ConfigMap "gadget"`)},
			},
		},
		"the name is that of another node's child": {
			node:  changedChild(labels),
			calls: []string{"desired child", "create ConfigMap", "reflect nothing, " + exists.Error() + ` and is controlled by Widget gadget as the child of the node "Another"`},
			widgetCase: widgetCase{
				GivenObjects:    []client.Object{inTheWay},
				APIGivenObjects: []client.Object{inTheWay},
				WithReactors:    []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{Error: exists})},
				ExpectResource:  reflecting("nothing"),
				ExpectCreates:   []client.Object{configMap.With(childOf("Settings"))},
				ExpectTracks:    []rtesting.TrackRequest{rtesting.NewTrackRequest(inTheWay, widget, widgetScheme)},
				ExpectEvents: failedTo("create", "gadget",
					fmt.Errorf(`%w and is controlled by Widget gadget as the child of the node "Another"`, exists)),
			},
		},
		"the cache does not show what has no label": {
			node:  changedChild(labels),
			calls: []string{"desired child", "create ConfigMap"},
			widgetCase: widgetCase{
				APIGivenObjects: []client.Object{givenConfigMap},
				WithReactors:    []rtesting.ReactionFunc{rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{Error: exists})},
				ExpectCreates:   []client.Object{configMap.With(childOf("Settings"))},
				ExpectEvents:    failedTo("create", "gadget", exists),
				ShouldErr:       true,
				Verify:          returns(exists),
			},
		},
		"not desired": {
			node:  changedChild(labels, desires(desiresNothing)),
			calls: []string{"desired child", "delete ConfigMap", "reflect nothing, <nil>"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{givenConfigMap.With(childOf("Settings")), givenConfigMap.With(other)},
				ExpectResource: reflecting("nothing"),
				ExpectDeletes:  []rtesting.DeleteRef{deleteOf(givenConfigMap)},
				ExpectEvents:   []rtesting.Event{deletedEvent("gadget")},
			},
		},
		"not owned, and found by OurChild too": {
			node:  changedChild(withoutOwner, labels),
			calls: []string{"desired child", "update ConfigMap", "reflect gadget, <nil>"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{
					givenConfigMap.With(ownerless, labelled), givenConfigMap.With(ownerless, labelled, other, childOf("Another")),
				},
				ExpectResource: reflecting("gadget"),
				ExpectTracks:   []rtesting.TrackRequest{rtesting.NewTrackRequest(givenConfigMap, widget, widgetScheme)},
				ExpectUpdates:  []client.Object{givenConfigMap.With(ownerless, labelled, childOf("Settings"))},
				ExpectEvents:   []rtesting.Event{normal("Updated", `Updated ConfigMap "gadget"`)},
			},
		},
		"a set": {
			node: changedSet([]string{"a", "b"}, labelsSet),
			calls: []string{
				"desired children of 1 known", "update ConfigMap", "create ConfigMap", "delete ConfigMap",
				"reflect [a: gadget-a, b: gadget-b, x: nothing]",
			},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{
					givenPart("a"), givenPart("x", childOf("Settings")), givenPart("y"), givenPart("z", childOf("Another")),
				},
				ExpectUpdates: []client.Object{givenPart("a", childOf("Settings"))},
				ExpectCreates: []client.Object{part("b", childOf("Settings"))},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenPart("x"))},
				ExpectEvents: []rtesting.Event{
					normal("Updated", `Updated ConfigMap "gadget-a"`), createdEvent("gadget-b"), deletedEvent("gadget-x"),
				},
			},
		},
	}.run(t)
}

// twoChildren are the nodes of a tree with two children of one type and different data.
func twoChildren(change func(*configMapNode)) (a, b *configMapNode) {
	node := func(name string) *configMapNode {
		node := &configMapNode{
			Name: name,
			DesiredChild: func(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
				return &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-" + w.Spec.Fields[name]},
					Data:       map[string]string{"node": name},
				}, nil
			},
			MergeBeforeUpdate:          func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
			ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {},
		}
		change(node)
		return node
	}
	return node("a"), node("b")
}

// Two nodes that count one object as their child change it once, and not for ever.
func TestTwoNodesDoNotWriteOneChildForEver(t *testing.T) {
	t.Parallel()
	c := live(t)
	var attempts atomic.Int64
	failed := make(chan error, 1)
	op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
		a, b := twoChildren(saysOurs)
		root := treeOf(widgetSequence{a, b})(config)
		root.AfterReconcile = func(_ context.Context, _ reconcilers.Request, result reconcilers.Result, err error) (reconcilers.Result, error) {
			if err != nil {
				attempts.Add(1)
				select {
				case failed <- err:
				default:
				}
			}
			return result, err
		}
		return root
	})
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: "widget"}}
	w.Spec.Fields = map[string]string{"a": "same", "b": "same"}
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not tried again and again", func(context.Context) error {
		if n := attempts.Load(); n < 8 {
			return fmt.Errorf("%d attempts have failed, with %d writes, want 8", n, op.requests.Writes())
		}
		return nil
	})
	err := <-failed
	for _, node := range []string{"WidgetResourceReconciler/0/a", "WidgetResourceReconciler/1/b"} {
		if !strings.Contains(err.Error(), node) {
			t.Errorf("the error is %v, want it to name %s", err, node)
		}
	}
	child := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "widget-same"}, child); err != nil {
		t.Fatal(err)
	}
	if n := op.requests.Writes(); n > 10 {
		t.Errorf("there are %d writes in eight attempts, want at most 10:\n%s", n, op.requests)
	}
	if child.Data["node"] != "a" {
		t.Errorf("the child has %v, want the node a", child.Data)
	}
}

// A child that was made before its node labelled children is labelled and kept, beside the child of another node.
// Nothing is written once all is as desired.
func TestLabelledChildrenOfOneTypeLiveTogether(t *testing.T) {
	t.Parallel()
	c := live(t)
	before, _ := twoChildren(func(*configMapNode) {})
	namespace := plane.Namespace(t)
	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "widget"}}
	w.Spec.Fields = map[string]string{"a": "one", "b": "two"}
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	children := func(ctx context.Context, expected ...string) (map[string]types.UID, error) {
		var list corev1.ConfigMapList
		if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		found, uids := map[string]bool{}, map[string]types.UID{}
		for _, child := range list.Items {
			if metav1.IsControlledBy(&child, w) {
				found[child.Name+" "+child.Data["node"]+child.Labels[reconcilers.NodeLabel]] = true
				uids[child.Name] = child.UID
			}
		}
		for _, name := range expected {
			if !found[name] {
				return nil, fmt.Errorf("there are %v", found)
			}
		}
		if len(found) != len(expected) {
			return nil, errors.New("there are too many")
		}
		return uids, nil
	}
	var uids map[string]types.UID
	expect := func(expected ...string) {
		t.Helper()
		eventually(t, "the children are others", func(ctx context.Context) (err error) {
			uids, err = children(ctx, expected...)
			return err
		})
	}

	first, _ := startOperatorIn(t, namespace, ctrl.Options{}, treeOf(before))
	expect("widget-one a")
	first.stop()
	unlabelled := uids["widget-one"]

	a, b := twoChildren(labelsChildren)
	op, roots := startOperatorIn(t, namespace, ctrl.Options{}, treeOf(widgetSequence{a, b}))
	expect("widget-one aa", "widget-two bb")
	if uids["widget-one"] != unlabelled {
		t.Errorf("the child has the UID %s, want that of before, %s", uids["widget-one"], unlabelled)
	}
	reconcileSteadily(t, op, roots[0], w)
}
