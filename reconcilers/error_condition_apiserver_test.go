package reconcilers_test

import (
	"context"
	"fmt"
	"math"
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
	began := time.Now()
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
	tried := func(least int64) {
		t.Helper()
		eventually(t, "not tried again and again", func(context.Context) error {
			if n := attempts.Load(); n < least {
				return fmt.Errorf("there are %d attempts, want %d or more", n, least)
			}
			return nil
		})
	}
	tried(5) // the texts of the first four are written
	says("False", "WidgetResourceReconciler/Registration: attempt ")
	version := widget.ResourceVersion
	tried(9)
	n, took := attempts.Load(), time.Since(began)
	says("False", "WidgetResourceReconciler/Registration: attempt ")
	// Delays begin with 5 ms and double, and the events of the resource make some attempts more.
	if most := 8 + int64(math.Log2(float64(took/(5*time.Millisecond)))); n > most || widget.ResourceVersion != version {
		t.Errorf("after %d attempts in %s the resource has version %s, want at most %d and %s", n, took,
			widget.ResourceVersion, most, version)
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
