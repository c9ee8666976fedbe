package reconcilers_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What changed while no operator ran, and what is not ready, is not behind everything that is as it should be.
func TestUnfinishedResourcesComeFirstAtTheStart(t *testing.T) {
	c, namespace := live(t), plane.Namespace(t)
	const settled = 20
	for i := range settled {
		createWidget(t, c, namespace, fmt.Sprintf("m-%02d", i), 1, metav1.ConditionTrue)
	}
	createWidget(t, c, namespace, "z-changed", 0, metav1.ConditionTrue)
	createWidget(t, c, namespace, "z-failing", 1, metav1.ConditionFalse)
	createWidget(t, c, namespace, "z-new", 0, "")
	leaving := createWidget(t, c, namespace, "z-leaving", 1, metav1.ConditionTrue)
	if err := c.Delete(t.Context(), leaving); err != nil {
		t.Fatalf("unable to delete a widget: %v", err)
	}

	var mu sync.Mutex
	var order []string
	options := ctrl.Options{}
	options.Controller.MaxConcurrentReconciles = 1
	startOperatorIn(t, namespace, options, func(config reconcilers.Config) *widgetRoot {
		return &widgetRoot{Config: config, Reconciler: &widgetSync{
			SyncDuringFinalization: true,
			Sync: func(_ context.Context, w *resources.Widget) error {
				mu.Lock()
				defer mu.Unlock()
				if !slices.Contains(order, w.Name) {
					order = append(order, w.Name)
				}
				return nil
			},
		}}
	})
	eventually(t, "not all widgets were reconciled", func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if len(order) < settled+4 {
			return fmt.Errorf("these were: %q", order)
		}
		return nil
	})
	first := slices.Sorted(slices.Values(order[:4]))
	if want := []string{"z-changed", "z-failing", "z-leaving", "z-new"}; !slices.Equal(first, want) {
		t.Errorf("the first four requests were for %q, want %q (all: %q)", first, want, order)
	}
}

// createWidget makes a widget whose status is about a generation, with a condition Ready. Without one, it has no status.
func createWidget(
	t *testing.T, c client.Client, namespace, name string, observed int64, ready metav1.ConditionStatus,
) *resources.Widget {
	t.Helper()
	widget := newWidget(namespace, name, nil)
	widget.Finalizers = []string{"test.espalier.dev/kept"}
	if err := c.Create(t.Context(), widget); err != nil {
		t.Fatalf("unable to create a widget: %v", err)
	}
	t.Cleanup(func() {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := c.Patch(context.Background(), widget, patch); client.IgnoreNotFound(err) != nil {
			t.Errorf("unable to let the widget %s go: %v", name, err)
		}
	})
	if ready == "" {
		return widget
	}
	widget.Status.ObservedGeneration = observed
	widget.Status.Conditions = []metav1.Condition{{
		Type: apis.ConditionReady, Status: ready, Reason: "Test", LastTransitionTime: metav1.Now(),
	}}
	if err := c.Status().Update(t.Context(), widget); err != nil {
		t.Fatalf("unable to write the status of a widget: %v", err)
	}
	return widget
}
