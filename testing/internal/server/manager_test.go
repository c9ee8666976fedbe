package server_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

// TestManager runs a manager that keeps a ConfigMap for each Deployment.
func TestManager(t *testing.T) {
	run(t, server.Options{}, func(c cluster) {
		ctx, cancel := context.WithCancel(c.ctx)
		defer synctest.Wait()
		defer cancel()
		m, err := ctrl.NewManager(c.config, ctrl.Options{
			Metrics:    metricsserver.Options{BindAddress: "0"},
			Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		})
		c.must(err)
		c.must(ctrl.NewControllerManagedBy(m).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).
			Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				parent := &appsv1.Deployment{}
				if err := m.GetClient().Get(ctx, r.NamespacedName, parent); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
				_, err := controllerutil.CreateOrUpdate(ctx, m.GetClient(), child, func() error {
					child.Data = map[string]string{"of": parent.Name}
					return controllerutil.SetControllerReference(parent, child, m.GetScheme())
				})
				return reconcile.Result{}, err
			})))
		stopped := make(chan error, 1)
		go func() { stopped <- m.Start(ctx) }()
		c.create(deployment("a"))
		time.Sleep(time.Second)
		child := configMap("a")
		c.get(child)
		c.must(c.Delete(c.ctx, child))
		time.Sleep(5 * time.Hour)
		c.get(child)
		if child.Data["of"] != "a" {
			c.Errorf("the child is %v", child)
		}
		c.refused(c.Get(c.ctx, client.ObjectKey{Namespace: "default", Name: "b"}, child), apierrors.IsNotFound)
		cancel()
		c.must(<-stopped)
	})
}

// TestParallelServers runs servers at the same time, each in a bubble of its own.
func TestParallelServers(t *testing.T) {
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			run(t, server.Options{RBAC: true}, func(c cluster) {
				c.define(widgets())
				c.create(widget("a", 1))
				c.create(deployment("a"))
			})
		})
	}
}
