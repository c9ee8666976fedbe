// Package controller keeps what each Placeholder asks for. [New] returns the tree; each of its nodes is tested alone.
package controller

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/cmd/espalier/internal/scaffold/project/tree/api/v9alpha9"
	"github.com/espalier-dev/espalier/reconcilers"
)

// SetUp adds the controller to a manager.
func SetUp(ctx context.Context, mgr ctrl.Manager, config reconcilers.Config) error {
	return New(config).SetupWithManager(ctx, mgr)
}

// New returns the root of the tree.
func New(config reconcilers.Config) *reconcilers.ResourceReconciler[*v9alpha9.Placeholder] {
	return espalier.For(config,
		Deployment(),
	)
}

// Deployment runs the pods.
func Deployment() reconcilers.SubReconciler[*v9alpha9.Placeholder] {
	return espalier.Owns("Deployment", desiredDeployment).
		Reports(v9alpha9.DeploymentReady).
		Observes(func(_ context.Context, resource *v9alpha9.Placeholder, live *appsv1.Deployment) error {
			resource.Status.ReadyReplicas = 0
			if live != nil {
				resource.Status.ReadyReplicas = live.Status.ReadyReplicas
			}
			return nil
		})
}

func desiredDeployment(_ context.Context, resource *v9alpha9.Placeholder) (*appsv1.Deployment, error) {
	labels := map[string]string{
		"app.kubernetes.io/name": "placeholder", "app.kubernetes.io/instance": resource.Name,
	}
	deployment := &appsv1.Deployment{}
	//scaffold:if namespaced
	deployment.Namespace = resource.Namespace
	//scaffold:end
	//scaffold:if cluster
	//+deployment.Namespace = resource.Spec.Namespace
	//scaffold:end
	deployment.Name = resource.Name
	deployment.Labels = labels
	deployment.Spec.Replicas = &resource.Spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: resource.Spec.Image}}
	return deployment, nil
}

// NewScheme returns a scheme with all types that the tree deals with.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), v9alpha9.AddToScheme(scheme))
}
