package simulation_test

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/testing/simulation"
)

// setUp adds a controller that runs a Job for each ConfigMap with the label "backup", once.
func setUp(_ context.Context, mgr ctrl.Manager) error {
	c := mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
		func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			plan := &corev1.ConfigMap{}
			if err := c.Get(ctx, r.NamespacedName, plan); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			if plan.Labels["backup"] != "once" {
				return reconcile.Result{}, nil
			}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, GenerateName: "backup-"}}
			job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
			job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "backup", Image: "backup"}}
			if err := c.Create(ctx, job); err != nil {
				return reconcile.Result{}, err
			}
			plan.Labels["backup"] = "done"
			return reconcile.Result{}, c.Update(ctx, plan)
		}))
}

func testBackup(t *testing.T) {
	simulation.RunFaults(t, simulation.Options{Operator: setUp}, func(w *simulation.World) {
		w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "db", Labels: map[string]string{"backup": "once"},
		}})
		w.Rest()
		jobs := &batchv1.JobList{}
		w.List(jobs)
		if len(jobs.Items) != 1 {
			w.Errorf("there are %d backups", len(jobs.Items))
		}
	})
}
