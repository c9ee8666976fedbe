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
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What has the name of a child is explained in the error and in the event. The error stays what it was for those who
// look into it.
func TestAnErrorSaysWhoseTheObjectIs(t *testing.T) {
	exists := apierrs.NewAlreadyExists(configMapResource, "gadget")
	for name, test := range map[string]struct {
		blocker client.Object
		induced error
		changes []func(*configMapNode)
		claim   string
	}{
		"another controller": {
			blocker: givenConfigMap.With(func(c *corev1.ConfigMap) {
				c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Shop", Name: "corner", UID: "other", Controller: new(true)}}
			}),
			claim: "is controlled by Shop corner",
		},
		"wrapped by the object manager": {
			blocker: givenConfigMap.With(func(c *corev1.ConfigMap) {
				c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Shop", Name: "corner", UID: "other", Controller: new(true)}}
			}),
			induced: wrappedError(exists),
			claim:   "is controlled by Shop corner",
		},
		"Helm": {
			blocker: givenConfigMap.With(ownerless, func(c *corev1.ConfigMap) {
				c.Annotations = map[string]string{"meta.helm.sh/release-name": "shop"}
			}),
			claim: "belongs to the Helm release shop",
		},
		"a component": {
			blocker: givenConfigMap.With(ownerless, func(c *corev1.ConfigMap) {
				c.Annotations = map[string]string{"garden.example.com/owner-id": "Shop/north/corner/uid-1"}
			}),
			claim: "belongs to Shop north/corner",
		},
		"another node of the tree": {
			blocker: givenConfigMap,
			changes: []func(*configMapNode){func(node *configMapNode) {
				node.OurChild = func(*resources.Widget, *corev1.ConfigMap) bool { return false }
			}},
			claim: "is controlled by Widget gadget, but is not selected by OurChild",
		},
		"nobody that is known": {blocker: givenConfigMap.With(ownerless)},
	} {
		t.Run(name, func(t *testing.T) {
			text := exists.Error()
			if test.induced != nil {
				text = test.induced.Error()
			}
			if test.claim != "" {
				text += " and " + test.claim
			}
			var reflected error
			row := widgetCase{
				APIGivenObjects: []client.Object{test.blocker},
				ExpectCreates:   []client.Object{configMap},
				ExpectEvents:    failedTo("create", "gadget", errors.New(text)),
				ExpectTracks:    []rtesting.TrackRequest{rtesting.NewTrackRequest(test.blocker, widget, widgetScheme)},
			}
			if test.induced != nil {
				row.WithReactors = []rtesting.ReactionFunc{
					rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{Error: test.induced}),
				}
			}
			nodeTests{"": {widgetCase: row, node: func(calls *trace) widgetNode {
				node := changedChild(test.changes...)(calls).(*configMapNode)
				node.ReflectChildStatusOnParent = func(_ context.Context, _ *resources.Widget, _ *corev1.ConfigMap, err error) {
					if !calls.replays {
						reflected = err
					}
				}
				return node
			}}}.run(t)
			if reflected == nil || reflected.Error() != text {
				t.Errorf("reflected %v, want %s", reflected, text)
			}
			if !apierrs.IsAlreadyExists(reflected) || test.induced != nil && !errors.Is(reflected, test.induced) {
				t.Errorf("reflected %v, want an AlreadyExists that wraps %v", reflected, test.induced)
			}
			if test.induced != nil {
				return
			}
			// Functions that were written for reconciler.io/runtime assert the type.
			status, ok := reflected.(apierrs.APIStatus)
			if !ok || status.Status().Details.Name != "gadget" || status.Status().Message != text {
				t.Errorf("reflected %v, want an error with a status of the API server", reflected)
			}
		})
	}
}

// A name that is taken costs one create, also if the resource is reconciled again and again, and one event.
func TestATakenNameIsAskedForOnce(t *testing.T) {
	blocker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "gadget", UID: "blocker",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Shop", Name: "corner", UID: "other", Controller: new(true)}},
	}}
	q, _ := newVirtualQueue(statusChild(), []client.Object{steadyWidget, blocker})
	events := record.NewFakeRecorder(1000)
	config := &q.root.(*widgetRoot).Config
	config.APIReader, config.Recorder = q.client, events
	message := ""
	for range 5 {
		q.wake(latency)
		q.run(t, time.Minute)
		now := q.widget(t).Status.GetCondition(resources.WidgetChildReady).Message
		if !strings.HasSuffix(now, "already exists and is controlled by Shop corner") || message != "" && now != message {
			t.Errorf("the condition says %q, want it to say whose the object is, as before: %q", now, message)
		}
		message = now
	}
	failures := 0
	for range len(events.Events) {
		if strings.Contains(<-events.Events, "CreationFailed") {
			failures++
		}
	}
	if n := q.count("create ConfigMap"); n != 1 || failures != 1 {
		t.Errorf("there are %d creates and %d events, want one of each", n, failures)
	}
	if err := q.client.Delete(t.Context(), blocker); err != nil {
		t.Fatal(err)
	}
	q.wake(latency)
	q.run(t, time.Minute)
	if condition := q.widget(t).Status.GetCondition(resources.WidgetChildReady); condition.Status != metav1.ConditionTrue {
		t.Errorf("the condition is %v after the name became free, want it true", condition)
	}
}

// The condition and the event of a resource say which controller, which release and which field manager has what the
// children would be called.
func TestARealBlockerIsExplained(t *testing.T) {
	t.Parallel()
	c := live(t)
	errs := func(w *resources.Widget, id string, err error) {
		if err != nil {
			w.Status.AddField(id, err.Error())
		}
	}
	op, _ := startOperator(t, func(config reconcilers.Config) *widgetRoot {
		single := configMapChild("single")
		single.ReflectChildStatusOnParent = func(_ context.Context, w *resources.Widget, _ *corev1.ConfigMap, err error) {
			errs(w, "single", err)
		}
		set := fieldsSet(func(node *configMapSet) {
			node.OurChild = func(_ *resources.Widget, child *corev1.ConfigMap) bool { return child.Labels[setLabel] != "" }
			node.ReflectChildrenStatusOnParent = func(_ context.Context, w *resources.Widget, result reconcilers.ChildSetResult[*corev1.ConfigMap]) {
				for _, child := range result.Children {
					errs(w, child.Id, child.Err)
				}
			}
		})
		return &widgetRoot{Config: config, Reconciler: widgetSequence{single, set}}
	})
	create := func(name string, change func(*corev1.ConfigMap), opts ...client.CreateOption) *corev1.ConfigMap {
		t.Helper()
		blocker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: name}}
		if change != nil {
			change(blocker)
		}
		if err := c.Create(t.Context(), blocker, opts...); err != nil {
			t.Fatal(err)
		}
		return blocker
	}
	owner := create("owner", nil)
	create("widget-single", func(blocker *corev1.ConfigMap) {
		blocker.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	})
	create("widget-image", func(blocker *corev1.ConfigMap) {
		blocker.Annotations = map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"}
	})
	create("widget-color", func(blocker *corev1.ConfigMap) { blocker.Data = map[string]string{"value": "red"} }, client.FieldOwner("paint"))

	w := &resources.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: "widget"}}
	w.Spec.Fields = map[string]string{"image": "x", "color": "blue"}
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	expected := map[string]string{
		"single": `configmaps "widget-single" already exists and is controlled by ConfigMap owner`,
		"image":  `configmaps "widget-image" already exists and belongs to the Helm release shop/web`,
		"color":  `configmaps "widget-color" already exists and was written by paint`,
	}
	eventually(t, "the status does not say whose the objects are", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		for id, text := range expected {
			if w.Status.Fields[id] != text {
				return fmt.Errorf("%s: %q", id, w.Status.Fields[id])
			}
		}
		return nil
	})
	eventually(t, "the events do not say whose the objects are", func(ctx context.Context) error {
		var events corev1.EventList
		if err := c.List(ctx, &events, client.InNamespace(w.Namespace)); err != nil {
			return err
		}
		for id, text := range expected {
			said := fmt.Sprintf("Failed to create ConfigMap %q: %s", "widget-"+id, text)
			if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
				return e.Type == corev1.EventTypeWarning && e.Reason == "CreationFailed" && e.Message == said
			}) {
				return fmt.Errorf("no event %q", said)
			}
		}
		return nil
	})
}
