package dependents_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/dependents"
	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// suspending is a supervisor with the rules of package health.
type suspending struct {
	supervisor
	health.Suspensions
}

func (r *suspending) Suspend(desired client.Object) (bool, error) {
	return r.Suspensions.Suspend(desired)
}

func supervisedBy(s reconcilers.Supervisor, n node) node {
	return &reconcilers.SyncReconciler[*resources.Widget]{
		SyncWithResult: func(ctx context.Context, w *resources.Widget) (reconcilers.Result, error) {
			return n.Reconcile(reconcilers.WithSupervisor(ctx, s), w)
		},
	}
}

// What is only created is suspended and resumed all the same. It is written for nothing else.
func TestCreateOnlyIsSuspended(t *testing.T) {
	deployment := func(replicas int32, edits ...func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: widget.Object().Namespace, Name: "web", CreationTimestamp: created, UID: "web",
			Labels: map[string]string{reconcilers.NodeLabel: "web"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(widget.Object(),
				resources.GroupVersion.WithKind("Widget"))},
		}}
		d.Spec.Replicas = &replicas
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
		for _, edit := range edits {
			edit(d)
		}
		return d
	}
	marked := func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{dependents.SuspendedAnnotation: "true"}
	}
	applied := func(d *appsv1.Deployment) rtesting.ApplyRef {
		d.CreationTimestamp = metav1.Time{}
		return rtesting.ApplyRef{
			Group: "apps", Kind: "Deployment", Namespace: d.Namespace, Name: d.Name,
			ApplyConfiguration: rtesting.Applied(d), FieldOwner: "widget-controller", Force: new(true),
		}
	}
	says := func(reason, message string) *resources.Widget {
		return widget.With(is(metav1.ConditionFalse, reason, "web: "+message)).Object()
	}
	for name, tc := range map[string]struct {
		says reconcilers.Supervision
		row  rtesting.SubReconcilerTestCase[*resources.Widget]
	}{
		"it is scaled to zero": {reconcilers.Suspend, rtesting.SubReconcilerTestCase[*resources.Widget]{
			GivenObjects:   []client.Object{deployment(3)},
			ExpectApplies:  []rtesting.ApplyRef{applied(deployment(0, marked))},
			ExpectEvents:   event("Updated", `Updated Deployment "web"`),
			ExpectResource: says("Updating", "the roll-out is not finished"),
		}},
		"it was told": {reconcilers.Suspend, rtesting.SubReconcilerTestCase[*resources.Widget]{
			GivenObjects:   []client.Object{deployment(0, marked)},
			ExpectResource: says("Creating", "the roll-out is not finished"),
		}},
		"it is resumed": {reconcilers.Maintain, rtesting.SubReconcilerTestCase[*resources.Widget]{
			GivenObjects:   []client.Object{deployment(0, marked)},
			ExpectApplies:  []rtesting.ApplyRef{applied(deployment(3))},
			ExpectEvents:   event("Updated", `Updated Deployment "web"`),
			ExpectResource: says("Updating", "0 of 3 replicas available"),
		}},
		"others have scaled it": {reconcilers.Maintain, rtesting.SubReconcilerTestCase[*resources.Widget]{
			GivenObjects:   []client.Object{deployment(1)},
			ExpectResource: says("Creating", "0 of 1 replica available"),
		}},
	} {
		tc.row.Resource = widget.Object()
		tests{name: tc.row}.RunNode(t, scheme, func() node {
			s := &suspending{}
			s.says = tc.says
			return supervisedBy(s, setOf(dependents.Of("web",
				func(context.Context, *resources.Widget) (*appsv1.Deployment, error) {
					d := deployment(3)
					d.ObjectMeta = metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}
					return d, nil
				}).CreateOnly()))
		})
	}
}
