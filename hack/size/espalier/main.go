// Command espalier is an operator of one child: each Service has a ConfigMap of its name. "make size" compares its size
// with the size of the command plain beside it, which does the same.
package main

import (
	"context"
	"maps"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier/reconcilers"
)

func main() {
	if err := run(); err != nil {
		println(err.Error())
		os.Exit(1)
	}
}

func run() error {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		return err
	}
	root := &reconcilers.ResourceReconciler[*corev1.Service]{
		Config: reconcilers.NewConfig(mgr, &corev1.Service{}, 10*time.Hour),
		Reconciler: &reconcilers.ChildReconciler[*corev1.Service, *corev1.ConfigMap, *corev1.ConfigMapList]{
			DesiredChild: func(_ context.Context, service *corev1.Service) (*corev1.ConfigMap, error) {
				return &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name},
					Data:       maps.Clone(service.Labels),
				}, nil
			},
			MergeBeforeUpdate:          func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
			ReflectChildStatusOnParent: func(context.Context, *corev1.Service, *corev1.ConfigMap, error) {},
		},
	}
	ctx := ctrl.SetupSignalHandler()
	if err := root.SetupWithManager(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
