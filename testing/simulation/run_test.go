package simulation_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/testing/simulation"
)

// web runs a Deployment for each ConfigMap.
func web(_ context.Context, mgr ctrl.Manager) error {
	c := mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			parent := &corev1.ConfigMap{}
			if err := c.Get(ctx, r.NamespacedName, parent); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			if parent.Namespace != "default" {
				return reconcile.Result{}, nil
			}
			child := deployment(parent.Name)
			_, err := controllerutil.CreateOrUpdate(ctx, c, child, func() error {
				labels := map[string]string{"app": parent.Name}
				child.Spec.Replicas = ptr.To(int32(len(parent.Data["size"])))
				child.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
				child.Spec.Template.Labels = labels
				if len(child.Spec.Template.Spec.Containers) == 0 {
					child.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
				}
				return controllerutil.SetControllerReference(parent, child, mgr.GetScheme())
			})
			return reconcile.Result{}, err
		}))
}

func configMap(name, size string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"size": size},
	}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func TestStory(t *testing.T) {
	simulation.Run(t, simulation.Options{Operator: web}, func(w *simulation.World) {
		parent, child := configMap("web", "xx"), deployment("web")
		w.Create(parent)
		w.Rest()
		w.Get(child)
		if child.Status.ReadyReplicas != 2 {
			w.Errorf("%d replicas are ready", child.Status.ReadyReplicas)
		}
		w.Idle(time.Hour)
		w.Update(parent, func() { parent.Data["size"] = "xxx" })
		w.Rest()
		w.Get(child)
		if child.Status.ReadyReplicas != 3 {
			w.Errorf("%d replicas are ready", child.Status.ReadyReplicas)
		}
		w.Kill()
		w.Delete(parent)
		w.Rest()
		if w.Exists(child) {
			w.Error("the child is still there")
		}
		w.RestartServer(time.Minute)
		w.Create(configMap("other", "x"))
		w.Rest()
		w.Get(deployment("other"))
	})
}
