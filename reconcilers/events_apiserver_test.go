package reconcilers_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Clients of Kubernetes drop events of an object that had 25 in a short time. Those of the status and of finalizers
// must not use that up.
func TestEventsAreNotUsedUpByTheStatus(t *testing.T) {
	t.Parallel()
	tree := func(config reconcilers.Config) *widgetRoot {
		child := configMapChild("late")
		desired := child.DesiredChild
		child.DesiredChild = func(ctx context.Context, w *resources.Widget) (*corev1.ConfigMap, error) {
			if w.Spec.Fields["step"] != "30" {
				return nil, nil
			}
			return desired(ctx, w)
		}
		return &widgetRoot{
			SkipStatusEvents:    true,
			SkipFinalizerEvents: true,
			Config:              config,
			Reconciler: &widgetFinalizer{
				Finalizer: ours,
				Reconciler: widgetSequence{
					child,
					&widgetSync{Sync: func(_ context.Context, w *resources.Widget) error {
						w.Status.AddField("step", w.Spec.Fields["step"])
						return nil
					}},
				},
			},
		}
	}
	c := live(t)
	op, _ := startOperator(t, tree)
	widget := op.createWidget(t, c)
	// A conflict of the finalizer with a change of the spec would be an event.
	eventually(t, "there is no finalizer", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(widget), widget); err != nil {
			return err
		}
		if !slices.Contains(widget.Finalizers, ours) {
			return fmt.Errorf("the finalizers are %q", widget.Finalizers)
		}
		return nil
	})
	for step := 1; step <= 30; step++ {
		base := widget.DeepCopy()
		widget.Spec.Fields["step"] = strconv.Itoa(step)
		if err := c.Patch(t.Context(), widget, client.MergeFrom(base)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the status does not change", func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(widget), widget); err != nil {
				return err
			}
			if found := widget.Status.Fields["step"]; found != strconv.Itoa(step) {
				return fmt.Errorf("the status is of step %q", found)
			}
			return nil
		})
	}
	eventually(t, "no event of the child", func(ctx context.Context) error {
		var events corev1.EventList
		if err := c.List(ctx, &events, client.InNamespace(op.namespace)); err != nil {
			return err
		}
		var reasons []string
		for _, event := range events.Items {
			reasons = append(reasons, event.Reason)
		}
		if !slices.Equal(reasons, []string{"Created"}) {
			return fmt.Errorf("the events are %q", reasons)
		}
		return nil
	})
}
