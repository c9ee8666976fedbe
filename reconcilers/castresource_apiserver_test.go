package reconcilers_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A tree that sees Widgets as Deployments, which the API server has an endpoint of its own for, works on Widgets.
func TestTreeUnderACast(t *testing.T) {
	t.Parallel()
	var finalized atomic.Int32
	guarded := reconcilers.Sequence[*appsv1.Deployment]{
		childOfCast(),
		&deploymentSync{
			Sync: func(_ context.Context, d *appsv1.Deployment) error {
				d.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Cast", Status: corev1.ConditionTrue, Reason: "Seen"}}
				return nil
			},
			Finalize: func(context.Context, *appsv1.Deployment) error {
				finalized.Add(1)
				return nil
			},
		},
	}
	c := live(t)
	op, roots := startOperator(t, treeOf(&asDeployment{Reconciler: &deploymentFinalizer{Finalizer: ours, Reconciler: guarded}}))
	w := op.createWidget(t, c)
	key := client.ObjectKeyFromObject(w)
	eventually(t, "the status does not say so", func(ctx context.Context) error {
		if err := c.Get(ctx, key, w); err != nil || meta.IsStatusConditionTrue(w.Status.Conditions, "Cast") {
			return err
		}
		return fmt.Errorf("the conditions are %v", w.Status.Conditions)
	})
	if !slices.Equal(w.Finalizers, []string{ours}) {
		t.Errorf("the finalizers are %v, want %s alone", w.Finalizers, ours)
	}
	child := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), key, child); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{controlledBy(w)}, child.OwnerReferences); diff != "" {
		t.Errorf("the owner differs (-expected, +actual):\n%s", diff)
	}
	reconcileSteadily(t, op, roots[0], w)
	for _, event := range eventsAbout(t, c, w.Namespace) {
		if event.InvolvedObject.Kind != "Widget" {
			t.Errorf("the event %s is about a %s, want a Widget", event.Reason, event.InvolvedObject.Kind)
		}
	}

	// The child wakes the Widget, although the node that owns it sees a Deployment.
	if err := c.Delete(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deleted child stays away", func(ctx context.Context) error { return c.Get(ctx, key, &corev1.ConfigMap{}) })

	if err := c.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deletion does not complete", func(ctx context.Context) error {
		err := c.Get(ctx, key, &resources.Widget{})
		if apierrs.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("still there: %w", err)
	})
	if finalized.Load() == 0 {
		t.Error("the tree did not clean up, want it to")
	}
}

func eventsAbout(t *testing.T, c client.Client, namespace string) []corev1.Event {
	t.Helper()
	var events corev1.EventList
	if err := c.List(t.Context(), &events, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(events.Items) == 0 {
		t.Error("there are no events, want some")
	}
	return events.Items
}
