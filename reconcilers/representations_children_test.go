package reconcilers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	"github.com/espalier-dev/espalier/tracker"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manager is that of the children.
func (r childRepresentation[CT, CL]) manager() *reconcilers.UpdatingObjectManager[CT] {
	return &reconcilers.UpdatingObjectManager[CT]{Type: r.empty(), MergeBeforeUpdate: r.merge}
}

// childNode is a node that desires one child, which has the color of the resource; none if that has no color.
func (f combination[T, CT, CL]) childNode(reflect func(resource T, child string, err error)) *reconcilers.ChildReconciler[T, CT, CL] {
	return &reconcilers.ChildReconciler[T, CT, CL]{
		ChildType: f.child.empty(), ChildListType: f.child.list(),
		DesiredChild: func(_ context.Context, resource T) (none CT, err error) {
			if f.color(resource) == "" {
				return none, nil
			}
			return f.child.of(&corev1.ConfigMap{
				ObjectMeta: configMapMeta(resource, ""),
				Data:       map[string]string{"color": f.color(resource)},
			}), nil
		},
		ChildObjectManager: f.child.manager(),
		ReflectChildStatusOnParent: func(_ context.Context, resource T, child CT, err error) {
			color := ""
			if !isNone(child) {
				color = f.child.color(child)
			}
			reflect(resource, color, err)
		},
	}
}

// isNone tells that there is no object.
func isNone[O client.Object](obj O) bool { return any(obj) == any(*new(O)) }

// configMapMeta is that of a desired child of resource: of one in a set if it has an identity.
func configMapMeta(resource client.Object, id string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: resource.GetNamespace(), Name: resource.GetName()}
	if id != "" {
		meta.Name += "-" + id
		meta.Labels = map[string]string{"part": id}
	}
	return meta
}

// listTrack is the track of all ConfigMaps of a namespace.
func listTrack(namespace string) rtesting.TrackRequest {
	return rtesting.TrackRequest{Tracker: widgetKey, TrackedReference: tracker.Reference{
		Kind: "ConfigMap", Namespace: namespace, Selector: labels.Everything(),
	}}
}

func (f combination[T, CT, CL]) hasChild(t *testing.T) {
	node := func(calls *trace) reconcilers.SubReconciler[T] {
		return f.childNode(func(_ T, child string, err error) { calls.add("reflect %q %v", child, err) })
	}
	blue, colorless := f.of(blueWidget.Object()), f.of(widget.With(seenBefore).Object())
	runNodes(t, map[string]nodeRow[T]{
		"is created": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource:      blue,
				ExpectCreates: []client.Object{f.child.of(configMap.Object())}, ExpectEvents: []rtesting.Event{createdEvent("gadget")},
			},
			node: node, calls: []string{"create ConfigMap", `reflect "blue" <nil>`},
		},
		"is in sync": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{Resource: blue, GivenObjects: []client.Object{givenConfigMap}},
			node:                  node, calls: []string{`reflect "blue" <nil>`},
		},
		"is updated": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource: blue, GivenObjects: []client.Object{givenConfigMap.With(coloured("red"))},
				ExpectUpdates: []client.Object{f.child.of(givenConfigMap.Object())}, ExpectEvents: []rtesting.Event{updatedEvent("gadget")},
			},
			node: node, calls: []string{"update ConfigMap", `reflect "blue" <nil>`},
		},
		"is deleted": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource: colorless, GivenObjects: []client.Object{givenConfigMap},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap)}, ExpectEvents: []rtesting.Event{deletedEvent("gadget")},
			},
			node: node, calls: []string{"delete ConfigMap", `reflect "" <nil>`},
		},
		"is deleted with the resource": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource: f.of(blueWidget.With(terminating("f.io/f")).Object()), GivenObjects: []client.Object{givenConfigMap},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenConfigMap)}, ExpectEvents: []rtesting.Event{deletedEvent("gadget")},
			},
			node: node, calls: []string{"delete ConfigMap"},
		},
		"is that of another": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource:        blue,
				APIGivenObjects: []client.Object{givenConfigMap.With(ownerless)},
				GivenObjects:    []client.Object{givenConfigMap.With(ownerless)},
				ExpectCreates:   []client.Object{f.child.of(configMap.Object())},
				ExpectEvents:    []rtesting.Event{warning("CreationFailed", `Failed to create ConfigMap "gadget": configmaps "gadget" already exists`)},
				ExpectTracks:    []rtesting.TrackRequest{rtesting.NewTrackRequest(configMap, widget, widgetScheme)},
			},
			node: node, calls: []string{"create ConfigMap", `reflect "" configmaps "gadget" already exists`},
		},
	})
}

func (f combination[T, CT, CL]) hasChildren(t *testing.T) {
	node := func(calls *trace) reconcilers.SubReconciler[T] {
		return &reconcilers.ChildSetReconciler[T, CT, CL]{
			ChildType: f.child.empty(), ChildListType: f.child.list(),
			DesiredChildren: func(ctx context.Context, resource T) (children []CT, err error) {
				calls.add("known %d", len(reconcilers.RetrieveKnownChildren[CT](ctx)))
				for _, id := range []string{"c", "b"} {
					children = append(children, f.child.of(&corev1.ConfigMap{
						ObjectMeta: configMapMeta(resource, id), Data: map[string]string{"color": f.color(resource)},
					}))
				}
				return children, nil
			},
			IdentifyChild:      func(child CT) string { return child.GetLabels()["part"] },
			ChildObjectManager: f.child.manager(),
			ReflectChildrenStatusOnParent: func(_ context.Context, _ T, result reconcilers.ChildSetResult[CT]) {
				text := ""
				for _, partial := range result.Children {
					text += " " + partial.Id
					if !isNone(partial.Child) {
						text += "=" + f.child.color(partial.Child)
					}
				}
				calls.add("reflect%s", text)
			},
		}
	}
	runNodes(t, map[string]nodeRow[T]{
		"come and go": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource:      f.of(blueWidget.Object()),
				GivenObjects:  []client.Object{givenPart("a"), givenPart("b", coloured("red"))},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenPart("a"))},
				ExpectUpdates: []client.Object{f.child.of(givenPart("b"))},
				ExpectCreates: []client.Object{f.child.of(part("c"))},
				ExpectEvents:  []rtesting.Event{deletedEvent("gadget-a"), updatedEvent("gadget-b"), createdEvent("gadget-c")},
			},
			node: node, calls: []string{"known 2", "delete ConfigMap", "update ConfigMap", "create ConfigMap", "reflect a b=blue c=blue"},
		},
		"are in sync": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource:     f.of(blueWidget.Object()),
				GivenObjects: []client.Object{givenPart("b"), givenPart("c")},
			},
			node: node, calls: []string{"known 2", "reflect b=blue c=blue"},
		},
		"go with the resource": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource:      f.of(blueWidget.With(terminating("f.io/f")).Object()),
				GivenObjects:  []client.Object{givenPart("b")},
				ExpectDeletes: []rtesting.DeleteRef{deleteOf(givenPart("b"))}, ExpectEvents: []rtesting.Event{deletedEvent("gadget-b")},
			},
			node: node, calls: []string{"delete ConfigMap", "reflect"},
		},
	})
}

func (f combination[T, CT, CL]) tracks(t *testing.T) {
	node := func(calls *trace) reconcilers.SubReconciler[T] {
		return &reconcilers.SyncReconciler[T]{Sync: func(ctx context.Context, _ T) error {
			c, obj := reconcilers.RetrieveConfigOrDie(ctx), f.child.empty()
			err := c.TrackAndGet(ctx, client.ObjectKeyFromObject(configMap.Object()), obj)
			observers, observersErr := c.Tracker.GetObservers(f.child.of(configMap.Object()))
			calls.add("%s, %v, wakes %v %v", f.child.color(obj), client.IgnoreNotFound(err), observers, observersErr)
			list := f.child.list()
			err = c.TrackAndList(ctx, list, client.InNamespace("elsewhere"))
			calls.add("%v", err)
			return nil
		}}
	}
	everywhere := rtesting.NewTrackRequest(configMap, widget, widgetScheme)
	expected := []rtesting.TrackRequest{everywhere, listTrack("elsewhere")}
	wakes := fmt.Sprintf("<nil>, wakes [%s] <nil>", widgetKey)
	runNodes(t, map[string]nodeRow[T]{
		"what is there": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{
				Resource: f.of(blueWidget.Object()), GivenObjects: []client.Object{givenConfigMap}, ExpectTracks: expected,
			},
			node: node, calls: []string{"blue, " + wakes, "<nil>"},
		},
		"what is not": {
			SubReconcilerTestCase: rtesting.SubReconcilerTestCase[T]{Resource: f.of(blueWidget.Object()), ExpectTracks: expected},
			node:                  node, calls: []string{", " + wakes, "<nil>"},
		},
	})
	// A change of what is tracked wakes the resource, however it is represented.
	rtesting.SetupTests{"wakes": {
		GivenTracks:   []rtesting.TrackRequest{everywhere},
		ExpectWatches: []client.Object{f.watched, f.child.empty()},
		Events: []rtesting.SetupEvent{
			{Updated: f.child.of(givenConfigMap.Object()), ExpectRequests: []reconcilers.Request{widgetRequest}},
			{Updated: f.child.of(givenPart("other"))},
		},
	}}.Run(t, widgetScheme, func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
		return &reconcilers.ResourceReconciler[T]{Type: f.empty(), Config: c, Reconciler: &reconcilers.SyncReconciler[T]{
			Sync: func(context.Context, T) error { return nil },
			Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.Watches(f.child.empty(), reconcilers.EnqueueTracked(ctx))
				return nil
			},
		}}
	})
}
