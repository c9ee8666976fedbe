package reconcilers_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// supervised runs a node below a supervisor that says what the spec of the resource says. What the supervisor is told
// becomes a field of the status.
type supervised struct{ widgetNode }

func (n supervised) Reconcile(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
	s := &supervisor{spec: w.Spec.Fields}
	result, err := n.widgetNode.Reconcile(reconcilers.WithSupervisor(ctx, s), w)
	delete(w.Status.Fields, "observed")
	if len(s.observed) > 0 {
		w.Status.AddField("observed", strings.Join(s.observed, "\n"))
	}
	return result, err
}

type supervisor struct {
	spec     map[string]string
	mu       sync.Mutex
	observed []string
}

func (s *supervisor) Supervision() reconcilers.Supervision {
	return reconcilers.Supervision(s.spec["supervision"])
}

func (s *supervisor) SuspensionOf(client.Object) apis.Health {
	return apis.Health{State: apis.StateSuspended}
}

func (s *supervisor) Suspend(desired client.Object) (bool, error) {
	switch s.spec["suspend"] {
	case "error":
		return false, errBoom
	case "remove":
		return true, nil
	}
	desired.(*corev1.ConfigMap).Data["color"] = "gray"
	return false, nil
}

func (s *supervisor) Observe(object reconcilers.ObservedObject) {
	state := "absent"
	if child, ok := object.Object.(*corev1.ConfigMap); ok && child != nil {
		state = cmp.Or(child.Data["color"], "blank")
		if child.DeletionTimestamp != nil {
			state = "terminating"
		}
	}
	line := fmt.Sprintf("%s: %s %s/%s: %s", object.Node, object.Kind.Kind, object.Namespace, object.Name, state)
	if object.Err != nil {
		line += ": " + object.Err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observed = append(s.observed, line)
}

// asked is a widget whose spec has these keys and values, and whose supervisor is told these lines.
func asked(keysAndValues ...string) func(lines ...string) *resources.Widget {
	return func(lines ...string) *resources.Widget {
		w := widget.Object()
		w.Spec.Fields = map[string]string{}
		for i := 0; i+1 < len(keysAndValues); i += 2 {
			w.Spec.Fields[keysAndValues[i]] = keysAndValues[i+1]
		}
		if len(lines) > 0 {
			w.Status.AddField("observed", strings.Join(lines, "\n"))
		}
		return w
	}
}

func desiredAsAsked(_ context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
	switch w.Spec.Fields["desired"] {
	case "none":
		return nil, nil
	case "status":
		return nil, reconcilers.OnlyReconcileChildStatus
	case "error":
		return nil, errBoom
	}
	if w.Spec.Fields["supervision"] == string(reconcilers.Withdraw) {
		return nil, errors.New("asked in Withdraw")
	}
	return configMap.With(func(c *corev1.ConfigMap) { c.OwnerReferences = nil }).Object(), nil
}

func supervisedChild() widgetNode {
	return supervised{&configMapNode{
		Name:                       "Child",
		DesiredChild:               desiredAsAsked,
		ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {},
		ChildObjectManager:         &configMaps{MergeBeforeUpdate: mergeConfigMap},
	}}
}

type widgetRows = rtesting.NodeTests[*resources.Widget]

func TestChildReconcilerSupervised(t *testing.T) {
	gray := configMap.With(coloured("gray"))
	givenGray := givenConfigMap.With(coloured("gray"))
	maintain, suspend := asked(), asked("supervision", "Suspend")
	withdraw, remove := asked("supervision", "Withdraw"), asked("supervision", "Suspend", "suspend", "remove")
	failing, failingToSuspend := asked("desired", "error"), asked("supervision", "Suspend", "suspend", "error")
	undesired, statusOnly := asked("desired", "none"), asked("desired", "status")
	deleted := []rtesting.Event{normal("Deleted", `Deleted ConfigMap "gadget"`)}
	deletes := []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(givenConfigMap, widgetScheme)}
	beingDeleted := widget.With(terminating(theirs)).Object()
	const child = "Child: ConfigMap default/gadget: "

	widgetRows{
		"maintained, created": {
			Resource: maintain(), ExpectResource: maintain(child + "blue"),
			ExpectCreates: []client.Object{configMap},
			ExpectEvents:  []rtesting.Event{normal("Created", `Created ConfigMap "gadget"`)},
		},
		"maintained, in sync": {
			Resource: maintain(), ExpectResource: maintain(child + "blue"), GivenObjects: []client.Object{givenConfigMap},
		},
		"maintained, not desired": {
			Resource: undesired(), ExpectResource: undesired(child + "terminating"),
			GivenObjects:  []client.Object{givenConfigMap},
			ExpectDeletes: deletes, ExpectEvents: deleted,
		},
		"maintained, not desired and not there": {Resource: undesired()},
		"maintained, only the status is asked for": {
			Resource: statusOnly(), ExpectResource: statusOnly(child + "red"),
			GivenObjects: []client.Object{givenConfigMap.With(coloured("red"))},
		},
		"maintained, only the status is asked for, of nothing": {Resource: statusOnly()},
		"maintained, in the way of another": {
			Resource: maintain(), ExpectResource: maintain(child + `absent: configmaps "gadget" already exists`),
			GivenObjects: []client.Object{
				givenConfigMap.With(func(c *corev1.ConfigMap) { c.OwnerReferences = nil }),
			},
			ExpectCreates: []client.Object{configMap},
			ExpectEvents: []rtesting.Event{
				warning("CreationFailed", `Failed to create ConfigMap "gadget": configmaps "gadget" already exists`),
			},
			ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, widgetScheme)},
		},
		"maintained, unknown what is desired": {
			Resource: failing(), ExpectResource: failing("Child: ConfigMap /: absent: boom"), ExpectedErr: errBoom,
		},
		"maintained, unknown what is desired of a child": {
			Resource: failing(), ExpectResource: failing(child + "blue: boom"), ExpectedErr: errBoom,
			GivenObjects: []client.Object{givenConfigMap},
		},
		"maintained, the update fails": {
			Resource: maintain(), ExpectResource: maintain(child + "red: inducing failure for update ConfigMap"),
			GivenObjects:  []client.Object{givenConfigMap.With(coloured("red"))},
			WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("update", "ConfigMap")},
			ExpectUpdates: []client.Object{configMap},
			ExpectEvents: []rtesting.Event{
				warning("UpdateFailed", `Failed to update ConfigMap "gadget": inducing failure for update ConfigMap`),
			},
			ShouldErr: true,
		},
		"maintained, the children cannot be listed": {
			Resource: maintain(), ExpectResource: maintain("Child: ConfigMap /: absent: inducing failure for list ConfigMapList"),
			WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("list", "ConfigMapList")},
			ShouldErr:    true,
		},
		"suspended": {
			Resource: suspend(), ExpectResource: suspend(child + "gray"),
			GivenObjects:  []client.Object{givenConfigMap},
			ExpectUpdates: []client.Object{gray},
			ExpectEvents:  []rtesting.Event{normal("Updated", `Updated ConfigMap "gadget"`)},
		},
		"suspended before": {
			Resource: suspend(), ExpectResource: suspend(child + "gray"), GivenObjects: []client.Object{givenGray},
		},
		"resumed": {
			Resource: maintain(), ExpectResource: maintain(child + "blue"),
			GivenObjects:  []client.Object{givenGray},
			ExpectUpdates: []client.Object{configMap},
			ExpectEvents:  []rtesting.Event{normal("Updated", `Updated ConfigMap "gadget"`)},
		},
		"suspended by a delete": {
			Resource: remove(), ExpectResource: remove(child + "terminating"),
			GivenObjects:  []client.Object{givenConfigMap},
			ExpectDeletes: deletes, ExpectEvents: deleted,
		},
		"suspended by a delete before": {Resource: remove()},
		"cannot be suspended": {
			Resource: failingToSuspend(), ExpectResource: failingToSuspend(child + "blue: boom"), ExpectedErr: errBoom,
			GivenObjects: []client.Object{givenConfigMap},
		},
		"withdrawn": {
			Resource: withdraw(), ExpectResource: withdraw(child + "terminating"),
			GivenObjects:  []client.Object{givenConfigMap},
			ExpectDeletes: deletes, ExpectEvents: deleted,
		},
		"withdrawn, one that waits for a finalizer": {
			Resource: withdraw(), ExpectResource: withdraw(child + "terminating"),
			GivenObjects: []client.Object{givenConfigMap.With(leaving)},
		},
		"withdrawn before": {Resource: withdraw()},
		"withdrawn, one of somebody else": {
			Resource:     withdraw(),
			GivenObjects: []client.Object{givenConfigMap.With(func(c *corev1.ConfigMap) { c.OwnerReferences = nil })},
		},
		"withdrawn, and cannot be deleted": {
			Resource: withdraw(), ExpectResource: withdraw(child + "blue: inducing failure for delete ConfigMap"),
			GivenObjects:  []client.Object{givenConfigMap},
			WithReactors:  []rtesting.ReactionFunc{rtesting.InduceFailure("delete", "ConfigMap")},
			ExpectDeletes: deletes,
			ExpectEvents: []rtesting.Event{
				warning("DeleteFailed", `Failed to delete ConfigMap "gadget": inducing failure for delete ConfigMap`),
			},
			ShouldErr: true,
		},
		"a terminating resource has no supervision": {
			Resource: beingDeleted, GivenObjects: []client.Object{givenConfigMap},
			ExpectDeletes: deletes, ExpectEvents: deleted,
		},
	}.RunNode(t, widgetScheme, supervisedChild)
}

// An author may return one object again and again. It must be desired as before when the supervision is another one.
func TestSuspensionKeepsWhatTheAuthorDesires(t *testing.T) {
	var shared *corev1.ConfigMap
	suspend := asked("supervision", "Suspend")
	widgetRows{
		"suspended": {
			Resource: suspend(), ExpectResource: suspend("Child: ConfigMap default/gadget: gray"),
			GivenObjects: []client.Object{givenConfigMap.With(coloured("gray"))},
			Verify: func(t *testing.T, _ reconcilers.Result, _ error) {
				if color := shared.Data["color"]; color != "blue" {
					t.Errorf("the object of the author is %s, want blue", color)
				}
			},
		},
	}.RunNode(t, widgetScheme, func() widgetNode {
		shared = configMap.Object()
		node := supervisedChild().(supervised)
		node.widgetNode.(*configMapNode).DesiredChild = func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
			return shared, nil
		}
		return node
	})
}

func supervisedSet() widgetNode {
	return supervised{&configMapSet{
		Name: "Set",
		DesiredChildren: func(ctx context.Context, w *resources.Widget) ([]*corev1.ConfigMap, error) {
			if child, err := desiredAsAsked(ctx, w); child == nil {
				return nil, err
			}
			var desired []*corev1.ConfigMap
			for _, id := range []string{"a", "b"} {
				child := part(id)
				child.OwnerReferences = nil
				desired = append(desired, child)
			}
			return desired, nil
		},
		ReflectChildrenStatusOnParent: func(
			context.Context, *resources.Widget, reconcilers.ChildSetResult[*corev1.ConfigMap],
		) {
		},
		IdentifyChild:      func(c *corev1.ConfigMap) string { return c.Labels[setLabel] },
		ChildObjectManager: &configMaps{MergeBeforeUpdate: mergeConfigMap},
	}}
}

func TestChildSetReconcilerSupervised(t *testing.T) {
	maintain, suspend := asked(), asked("supervision", "Suspend")
	withdraw, remove := asked("supervision", "Withdraw"), asked("supervision", "Suspend", "suspend", "remove")
	failing, failingToSuspend := asked("desired", "error"), asked("supervision", "Suspend", "suspend", "error")
	statusOnly := asked("desired", "status")
	event := func(done, name string) rtesting.Event { return normal(done, done+` ConfigMap "`+name+`"`) }
	one := func(id, state string) string { return "Set/" + id + ": ConfigMap default/gadget-" + id + ": " + state }
	deletes := func(ids ...string) (refs []rtesting.DeleteRef) {
		for _, id := range ids {
			refs = append(refs, rtesting.NewDeleteRefFromObject(part(id), widgetScheme))
		}
		return refs
	}

	widgetRows{
		"maintained, one of each": {
			Resource: maintain(), ExpectResource: maintain(one("a", "blue"), one("b", "blue"), one("c", "terminating")),
			GivenObjects:  []client.Object{givenPart("a"), givenPart("c")},
			ExpectCreates: []client.Object{part("b")},
			ExpectDeletes: deletes("c"),
			ExpectEvents:  []rtesting.Event{event("Created", "gadget-b"), event("Deleted", "gadget-c")},
		},
		"maintained, one is refused": {
			Resource:       maintain(),
			ExpectResource: maintain(one("a", `absent: configmaps "gadget-a" already exists`), one("b", "blue")),
			GivenObjects: []client.Object{
				givenPart("a", func(c *corev1.ConfigMap) { c.OwnerReferences = nil }), givenPart("b"),
			},
			ExpectCreates: []client.Object{part("a")},
			ExpectEvents: []rtesting.Event{
				warning("CreationFailed", `Failed to create ConfigMap "gadget-a": configmaps "gadget-a" already exists`),
			},
			ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(part("a"), widget, widgetScheme)},
		},
		"maintained, unknown what is desired": {
			Resource: failing(), ExpectResource: failing("Set: ConfigMap /: absent: boom"), ExpectedErr: errBoom,
		},
		"maintained, unknown what is desired of a child": {
			Resource: failing(), ExpectResource: failing("Set: ConfigMap default/gadget-a: blue: boom"), ExpectedErr: errBoom,
			GivenObjects: []client.Object{givenPart("a")},
		},
		"maintained, only the status is asked for": {
			Resource: statusOnly(), ExpectResource: statusOnly(one("c", "red")),
			GivenObjects: []client.Object{givenPart("c", coloured("red"))},
		},
		"maintained, the children cannot be listed": {
			Resource: maintain(), ExpectResource: maintain("Set: ConfigMap /: absent: inducing failure for list ConfigMapList"),
			WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("list", "ConfigMapList")},
			ShouldErr:    true,
		},
		"suspended": {
			Resource: suspend(), ExpectResource: suspend(one("a", "gray"), one("b", "gray")),
			GivenObjects:  []client.Object{givenPart("a"), givenPart("b", coloured("gray"))},
			ExpectUpdates: []client.Object{givenPart("a", coloured("gray"))},
			ExpectEvents:  []rtesting.Event{event("Updated", "gadget-a")},
		},
		"suspended by deletes": {
			Resource: remove(), ExpectResource: remove(one("a", "terminating")),
			GivenObjects:  []client.Object{givenPart("a")},
			ExpectDeletes: deletes("a"),
			ExpectEvents:  []rtesting.Event{event("Deleted", "gadget-a")},
		},
		"suspended by deletes before": {Resource: remove()},
		"cannot be suspended": {
			Resource: failingToSuspend(), ExpectResource: failingToSuspend(one("a", "blue: boom")), ExpectedErr: errBoom,
			GivenObjects: []client.Object{givenPart("a")},
		},
		"withdrawn": {
			Resource: withdraw(), ExpectResource: withdraw(one("a", "terminating"), one("b", "terminating")),
			GivenObjects:  []client.Object{givenPart("a"), givenPart("b", leaving)},
			ExpectDeletes: deletes("a"),
			ExpectEvents:  []rtesting.Event{event("Deleted", "gadget-a")},
		},
		"withdrawn before": {Resource: withdraw()},
	}.RunNode(t, widgetScheme, supervisedSet)
}

// The finalizer of the object manager stays as long as one of the children is there.
func TestSuspensionKeepsTheFinalizerOfTheManager(t *testing.T) {
	remove := asked("supervision", "Suspend", "suspend", "remove")
	widgetRows{
		"one is there and one is not": {
			Resource: withFinalizers(remove(), ours),
			ExpectResource: withFinalizers(
				remove("Set/b: ConfigMap default/gadget-b: terminating"), ours),
			GivenObjects:  []client.Object{givenPart("b")},
			ExpectDeletes: []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(part("b"), widgetScheme)},
			ExpectEvents:  []rtesting.Event{normal("Deleted", `Deleted ConfigMap "gadget-b"`)},
		},
	}.RunNode(t, widgetScheme, func() widgetNode {
		node := supervisedSet().(supervised)
		manager := &configMaps{MergeBeforeUpdate: mergeConfigMap, Finalizer: ours}
		node.widgetNode.(*configMapSet).ChildObjectManager = manager
		return node
	})
}
