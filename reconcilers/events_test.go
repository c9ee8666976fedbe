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
	"github.com/espalier-dev/espalier/tracker"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// finalizedChild is a child that the resource does not own, and that has a finalizer of the resource.
func finalizedChild() widgetNode {
	return &configMapNode{
		Finalizer: "test.espalier.dev/child",
		ListOptions: func(context.Context, *resources.Widget) []client.ListOption {
			return []client.ListOption{client.InNamespace(widgetKey.Namespace)}
		},
		OurChild: func(_ *resources.Widget, child *corev1.ConfigMap) bool { return child.Name == "elsewhere" },
		DesiredChild: func(context.Context, *resources.Widget) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widgetKey.Namespace, Name: "elsewhere"}}, nil
		},
		MergeBeforeUpdate:          func(_, _ *corev1.ConfigMap) {},
		ReflectChildStatusOnParent: func(context.Context, *resources.Widget, *corev1.ConfigMap, error) {},
	}
}

// A root can leave out the events of finalizers, wherever in its tree they are written.
func TestSkipFinalizerEvents(t *testing.T) {
	tree := widgetIfThen{
		If:   func(context.Context, *resources.Widget) bool { return true },
		Then: &widgetFinalizer{Finalizer: ours, Reconciler: finalizedChild()},
	}
	for _, skip := range []bool{false, true} {
		t.Run(fmt.Sprint(skip), func(t *testing.T) {
			config, heard := expectWidget(steadyWidget).Config(), &listener{}
			config.Recorder = eventText{config.Recorder, heard}
			config.Tracker = tracker.New(widgetScheme, time.Hour)
			root := &widgetRoot{SkipStatusUpdate: true, SkipFinalizerEvents: skip, Reconciler: &tree, Config: config}
			mustReconcile(t, root, widgetRequest)
			if err := config.Delete(t.Context(), widget.Object()); err != nil {
				t.Fatal(err)
			}
			mustReconcile(t, root, widgetRequest)
			mustReconcile(t, root, widgetRequest)
			if err := config.Get(t.Context(), widgetKey, &resources.Widget{}); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("the read of the Widget ends with %v, want it not found", err)
			}
			checkFinalizerEvents(t, heard.heard, skip, 4)
		})
	}
}

func TestAggregateReconcilerSkipFinalizerEvents(t *testing.T) {
	for _, skip := range []bool{false, true} {
		t.Run(fmt.Sprint(skip), func(t *testing.T) {
			config, heard := expectWidget(steadyWidget).Config(), &listener{}
			config.Recorder = eventText{config.Recorder, heard}
			config.Tracker = tracker.New(widgetScheme, time.Hour)
			root := &reconcilers.AggregateReconciler[*resources.Widget]{
				Request:             widgetRequest,
				SkipFinalizerEvents: skip,
				Reconciler:          finalizedChild(),
				MergeBeforeUpdate:   func(_, _ *resources.Widget) {},
				Config:              config,
			}
			mustReconcile(t, root, widgetRequest)
			checkFinalizerEvents(t, heard.heard, skip, 1)
		})
	}
}

// A patch that failed is an event in any case.
func TestSkipFinalizerEventsRecordsFailures(t *testing.T) {
	expect := expectWidget(steadyWidget)
	expect.WithReactors = []rtesting.ReactionFunc{
		rtesting.InduceFailure("patch", "Widget", rtesting.InduceFailureOpts{Error: errBoom}),
	}
	config, heard := expect.Config(), &listener{}
	config.Recorder = eventText{config.Recorder, heard}
	root := &widgetRoot{
		SkipFinalizerEvents: true,
		Reconciler:          &widgetFinalizer{Finalizer: ours, Reconciler: widgetSequence{}},
		Config:              config,
	}
	if _, err := root.Reconcile(t.Context(), widgetRequest); !errors.Is(err, errBoom) {
		t.Errorf("the error is %v, want %v", err, errBoom)
	}
	if !slices.ContainsFunc(heard.heard, func(event string) bool { return strings.Contains(event, "FinalizerPatchFailed") }) {
		t.Errorf("the events are %q, want one of FinalizerPatchFailed", heard.heard)
	}
}

func mustReconcile(t *testing.T, root reconcile.Reconciler, request reconcile.Request) {
	t.Helper()
	if _, err := root.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
}

// checkFinalizerEvents checks that there is one event for each of so many patches, or none if they are left out.
func checkFinalizerEvents(t *testing.T, events []string, skip bool, patches int) {
	t.Helper()
	expected := patches
	if skip {
		expected = 0
	}
	recorded := 0
	for _, event := range events {
		if strings.Contains(event, "FinalizerPatched") {
			recorded++
		}
	}
	if recorded != expected || !slices.ContainsFunc(events, func(event string) bool { return strings.Contains(event, "event Created") }) {
		t.Errorf("%d events of finalizers, expected %d, among %q", recorded, expected, events)
	}
}
