package reconcilers_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A returned error is seen on the resource, does not keep the controller busy although its text differs each time, and
// is gone from the resource when the tree recovers.
func TestErrorConditionOnAnAPIServer(t *testing.T) {
	t.Parallel()
	c := live(t)
	var attempts atomic.Int64
	tree := func(config reconcilers.Config) *widgetRoot {
		return &widgetRoot{
			ErrorCondition: widgetReconciled,
			Config:         config,
			Reconciler: &widgetSync{Name: "Registration", Sync: func(_ context.Context, w *resources.Widget) error {
				if w.Spec.Fields["image"] == "example.com/app:1" {
					return fmt.Errorf("attempt %d was refused", attempts.Add(1))
				}
				return nil
			}},
		}
	}
	op, _ := startOperator(t, tree)
	widget := op.createWidget(t, c)
	says := func(status, message string) {
		t.Helper()
		eventually(t, "the condition is not "+status, func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(widget), widget); err != nil {
				return err
			}
			condition := widget.Status.GetCondition(widgetReconciled)
			if condition == nil || string(condition.Status) != status || !strings.HasPrefix(condition.Message, message) ||
				condition.ObservedGeneration != widget.Generation {
				return fmt.Errorf("the condition is %v", condition)
			}
			return nil
		})
	}
	says("False", "WidgetResourceReconciler/Registration: attempt ")
	version := widget.ResourceVersion
	time.Sleep(time.Second)
	says("False", "WidgetResourceReconciler/Registration: attempt ")
	if widget.ResourceVersion != version || attempts.Load() > 15 {
		t.Errorf("after %d attempts the resource has version %s, want at most 15 and %s", attempts.Load(),
			widget.ResourceVersion, version)
	}

	base := widget.DeepCopy()
	widget.Spec.Fields["image"] = "example.com/app:2"
	if err := c.Patch(t.Context(), widget, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	says("True", "")
	if condition := widget.Status.GetCondition(widgetReconciled); !apis.ConditionIsTrue(condition) || condition.Message != "" {
		t.Errorf("the condition is %v, want it true and without a message", condition)
	}
}
