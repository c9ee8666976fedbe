package reconcilers_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
	rtime "github.com/espalier-dev/espalier/time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recordingManager records what it is given.
type recordingManager struct {
	calls                     *trace
	config, original          reconcilers.Config
	resource, actual, desired *resources.Widget
}

func (m *recordingManager) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	m.calls.add("set up manager")
	return nil
}

func (m *recordingManager) Manage(ctx context.Context, resource client.Object, actual, desired *resources.Widget) (*resources.Widget, error) {
	m.calls.add("manage")
	m.config, m.original = reconcilers.RetrieveConfigOrDie(ctx), reconcilers.RetrieveOriginalConfigOrDie(ctx)
	m.resource, m.actual, m.desired = resource.(*resources.Widget), actual, desired
	return actual, m.config.Tracker.TrackObject(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "managed"}}, resource)
}

// Issues 1.10 and 1.13: the manager gets the object as it was read and as it should be, and a config that lacks nothing, whose
// tracks go nowhere. The tracks of the tree and of DesiredResource count.
func TestAggregateReconcilerAndItsManager(t *testing.T) {
	expect := expectWidget(widget)
	for _, name := range []string{"tree", "desired"} {
		expect.ExpectTracks = append(expect.ExpectTracks, rtesting.CreateTrackRequest("", "ConfigMap", "default", name).By("default", "gadget"))
	}
	config := expect.Config()
	track := func(ctx context.Context, name string) error {
		err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, types.NamespacedName{Namespace: "default", Name: name}, &corev1.ConfigMap{})
		return client.IgnoreNotFound(err)
	}
	manager := &recordingManager{calls: &trace{}}
	root := &widgetAggregate{
		Request: widgetRequest,
		Reconciler: &widgetSync{Sync: func(ctx context.Context, w *resources.Widget) error {
			painted(w)
			return track(ctx, "tree")
		}},
		DesiredResource: func(ctx context.Context, w *resources.Widget) (*resources.Widget, error) {
			w.Labels = map[string]string{"desired": "true"}
			return w, track(ctx, "desired")
		},
		AggregateObjectManager: manager,
		Config:                 config,
	}
	if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
		t.Fatal(err)
	}
	expect.AssertExpectations(t)
	if manager.original != config {
		t.Error("the original config is another, want that of the root")
	}
	if manager.config.Tracker == config.Tracker {
		t.Error("the tracker is that of the root, want another")
	}
	given, shown := reflect.ValueOf(config), reflect.ValueOf(manager.config)
	for i := range given.NumField() {
		field := given.Type().Field(i)
		if field.Name != "Tracker" && field.IsExported() && !shown.Field(i).Equal(given.Field(i)) {
			t.Errorf("%s is another, want that of the root", field.Name)
		}
	}
	if fields := manager.actual.Spec.Fields; fields != nil {
		t.Errorf("the fields of the actual object are %v, want none", fields)
	}
	if manager.resource.Spec.Fields["color"] != "blue" || len(manager.resource.Labels) > 0 {
		t.Errorf("the resource is %+v, want it as the tree left it: blue and without labels", manager.resource)
	}
	if manager.desired.Spec.Fields["color"] != "blue" || manager.desired.Labels["desired"] != "true" {
		t.Errorf("desired is %+v, want it blue and labelled", manager.desired)
	}
}

func TestAggregateIsDueAtStartAndForNoOtherName(t *testing.T) {
	renamed := func(namespace, name string) client.Object {
		return widget.With(func(w *resources.Widget) { w.Namespace, w.Name = namespace, name })
	}
	rtesting.SetupTests{"gadget": {
		ExpectWatches:  []client.Object{&resources.Widget{}},
		ExpectRequests: []reconcilers.Request{widgetRequest},
		Events: []rtesting.SetupEvent{
			{Updated: widget, ExpectRequests: []reconcilers.Request{widgetRequest}},
			{Deleted: widget, ExpectRequests: []reconcilers.Request{widgetRequest}},
			{Created: renamed(widgetKey.Namespace, "other")},
			{Created: renamed("other", widgetKey.Name)},
		},
	}}.Run(t, widgetScheme, func(_ *testing.T, _ *rtesting.SetupTestCase, c reconcilers.Config) rtesting.Setup {
		return &widgetAggregate{
			Request: widgetRequest, Config: c, Reconciler: paints(&trace{}, nothing, nil),
			MergeBeforeUpdate: mergeWidget,
		}
	})
}

// Errors tell where they came up, be it the tree, DesiredResource or the manager.
func TestAggregateReconcilerLocatesErrors(t *testing.T) {
	failing := func(verb string) reconcilers.Config {
		expect := expectWidget(widget)
		expect.WithReactors = []rtesting.ReactionFunc{rtesting.InduceFailure(verb, "Widget", rtesting.InduceFailureOpts{Error: errBoom})}
		return expect.Config()
	}
	fails := func(context.Context, *resources.Widget) error { return errBoom }
	for name, test := range map[string]struct {
		root  *widgetAggregate
		verb  string
		found string
	}{
		"tree": {
			root:  &widgetAggregate{Reconciler: widgetSequence{&widgetSync{Name: "mine", Sync: fails}}},
			found: "WidgetAggregateReconciler/mine: boom",
		},
		"desired": {
			root: &widgetAggregate{DesiredResource: func(context.Context, *resources.Widget) (*resources.Widget, error) {
				return nil, errBoom
			}},
			found: "WidgetAggregateReconciler: boom",
		},
		"manager": {
			root:  &widgetAggregate{Reconciler: paints(&trace{}, minute, nil)},
			verb:  "update",
			found: "WidgetAggregateReconciler: Widget default/gadget: boom",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.root.Request, test.root.MergeBeforeUpdate, test.root.Config = widgetRequest, mergeWidget, failing(test.verb)
			_, err := test.root.Reconcile(t.Context(), widgetRequest)
			var located *reconcilers.Error
			if !errors.As(err, &located) || !errors.Is(err, errBoom) {
				t.Fatalf("the error is %v, want a located %v", err, errBoom)
			}
			checkError(t, "returned,", err, test.found)
		})
	}
}

// What nodes rely on below any root is there below this one.
func TestAggregateReconcilerServesItsNodes(t *testing.T) {
	config := expectWidget(widget).Config()
	key := reconcilers.StashKey("test.espalier.dev/seen")
	calls := &trace{}
	root := &widgetAggregate{
		Request: widgetRequest,
		Reconciler: widgetSequence{&widgetSync{Name: "first", Sync: func(ctx context.Context, _ *resources.Widget) error {
			if reconcilers.RetrieveValue(ctx, key) != nil {
				calls.add("the stash is not fresh")
			}
			reconcilers.StashValue(ctx, key, "stashed")
			return nil
		}}, &widgetSync{Name: "second", Sync: func(ctx context.Context, _ *resources.Widget) error {
			calls.add("%v", reconcilers.RetrieveValue(ctx, key))
			calls.add("%s at %s", reconcilers.RetrievePath(ctx), rtime.RetrieveNow(ctx))
			calls.add("generation %d", apis.RetrieveGeneration(ctx))
			calls.add("of %T, as %T", reconcilers.RetrieveOriginalResourceType(ctx), reconcilers.RetrieveResourceType(ctx))
			return nil
		}}},
		DesiredResource: func(ctx context.Context, w *resources.Widget) (*resources.Widget, error) {
			calls.add("desired: %v", reconcilers.RetrieveValue(ctx, key))
			return w, nil
		},
		MergeBeforeUpdate: mergeWidget,
		Config:            config,
	}
	outer := reconcilers.WithStash(rtime.StashNow(t.Context(), requestTime))
	reconcilers.StashValue(outer, key, "outer")
	for range 2 {
		calls.calls = nil
		if _, err := root.Reconcile(outer, widgetRequest); err != nil {
			t.Fatal(err)
		}
		calls.compare(t, []string{
			"stashed",
			"WidgetAggregateReconciler/1/second at " + requestTime.String(),
			"generation 1",
			"of *resources.Widget, as *resources.Widget",
			"desired: stashed",
		})
	}
}

// A type without a Go type is reconciled like any other.
func TestAggregateReconcilerOfUnstructured(t *testing.T) {
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(resources.GroupVersion.WithKind("Widget"))
	calls := &trace{}
	expect := expectWidget()
	expect.WithReactors = []rtesting.ReactionFunc{calls.observe, assignUID}
	root := &reconcilers.AggregateReconciler[*unstructured.Unstructured]{
		Type:    kind,
		Request: widgetRequest,
		DesiredResource: func(_ context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			// Authors write what the API machinery does not know.
			u.Object["spec"] = map[string]any{"fields": map[string]string{"color": "blue"}}
			return u, nil
		},
		MergeBeforeUpdate: func(current, desired *unstructured.Unstructured) { current.Object["spec"] = desired.Object["spec"] },
		Config:            expect.Config(),
	}
	for range 3 {
		if _, err := root.Reconcile(t.Context(), widgetRequest); err != nil {
			t.Fatal(err)
		}
	}
	calls.compare(t, []string{"create Widget"})
}
