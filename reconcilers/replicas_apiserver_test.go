package reconcilers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pausable suspends the objects of a node while the field "name" of a widget is "paused".
type pausable struct{ widgetNode }

func (n pausable) Reconcile(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
	s := pauser{pauses: w.Spec.Fields["name"] == "paused"}
	return n.widgetNode.Reconcile(reconcilers.WithSupervisor(ctx, s), w)
}

type pauser struct {
	health.Suspensions
	pauses bool
}

func (p pauser) Supervision() reconcilers.Supervision {
	if p.pauses {
		return reconcilers.Suspend
	}
	return reconcilers.Maintain
}

func (p pauser) SuspensionOf(live client.Object) apis.Health { return p.Of(live) }

func (p pauser) Observe(reconcilers.ObservedObject) {}

// Replicas that others have chosen are there again after a suspension, and still are theirs.
func TestReplicasAreKeptOverASuspension(t *testing.T) {
	t.Parallel()
	c := live(t)
	desired := deploymentChild().DesiredChild
	op, roots := startOperator(t, treeOf(pausable{espalier.Owns("App",
		func(ctx context.Context, w *resources.Widget) (*appsv1.Deployment, error) {
			child, err := desired(ctx, w)
			child.Spec.Replicas = nil
			return child, err
		})}))
	w := op.createWidget(t, c)
	app := &appsv1.Deployment{}
	is := func(replicas int32, annotation string) {
		t.Helper()
		eventually(t, "not scaled", func(ctx context.Context) error {
			apps := &appsv1.DeploymentList{}
			if err := c.List(ctx, apps, client.InNamespace(w.Namespace)); err != nil || len(apps.Items) != 1 {
				return fmt.Errorf("there are %d Deployments (%v), want one", len(apps.Items), err)
			}
			*app = apps.Items[0]
			if n, had := *app.Spec.Replicas, app.Annotations["espalier.dev/replicas"]; n != replicas || had != annotation {
				return fmt.Errorf("there are %d replicas, and there were %q, want %d and %q", n, had, replicas, annotation)
			}
			return nil
		})
	}
	scale := func(replicas int) {
		t.Helper()
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
		if err := c.Patch(t.Context(), app, patch, client.FieldOwner("autoscaler")); err != nil {
			t.Fatal(err)
		}
	}
	is(1, "")
	for _, replicas := range []int32{5, 1, 7} {
		scale(int(replicas))
		is(replicas, "")
		setName(t, c, w, "paused")
		annotation := ""
		if replicas > 1 {
			annotation = fmt.Sprint(replicas)
		}
		is(0, annotation)
		setName(t, c, w, "")
		is(replicas, "")
	}
	reconcileSteadily(t, op, roots[0], w)
	scale(0)
	reconcileSteadily(t, op, roots[0], w)
	is(0, "")
}
