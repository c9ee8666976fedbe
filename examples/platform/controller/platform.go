// Package controller installs platforms. What it does is the tree in [New]; the objects that a platform consists of are
// made by [Objects].
package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/examples/platform/api/v1alpha1"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/reconcilers"
)

// New returns the root of the tree that installs platforms.
func New(config reconcilers.Config) *reconcilers.ResourceReconciler[*v1alpha1.Platform] {
	return &reconcilers.ResourceReconciler[*v1alpha1.Platform]{
		Name:   "Platform",
		Config: config,
		// What blocks a deletion is in the status.
		SyncStatusDuringFinalization: true,
		// A delay counts although the status was written.
		KeepResultAfterStatusUpdate: true,
		// The search needs the installation, and goes first. While the deletion of the installation is blocked, the
		// platform is used, and nothing else of it goes.
		Reconciler: reconcilers.ReverseOnDeletion[*v1alpha1.Platform]{
			Release(),
			Information(),
			Installation(),
			Search(),
		},
	}
}

// Installation deploys the objects of the release, and deletes them in the end.
func Installation() *component.ComponentReconciler[*v1alpha1.Platform] {
	return &component.ComponentReconciler[*v1alpha1.Platform]{
		Name:      "Installation",
		Prefix:    Prefix,
		Generator: objectsOf{},
		Configure: configure,
		Condition: v1alpha1.Installed,
		Reflect:   reflectInstalled,
		Dependents: []client.Object{
			dashboardType(),
			&corev1.ServiceAccount{},
			&rbacv1.ClusterRole{},
			&rbacv1.ClusterRoleBinding{},
			&corev1.ConfigMap{},
			NewDashboard("", "", ""),
		},
	}
}

// configure says that there are no namespaces to create: all objects that have one are in the platform's namespace.
func configure(_ context.Context, _ *v1alpha1.Platform, configuration *generator.Configuration) error {
	configuration.MissingNamespacesPolicy = apis.MissingNamespacesDoNotCreate
	return nil
}

// reflectInstalled has Ready follow the condition of the component.
func reflectInstalled(ctx context.Context, platform *v1alpha1.Platform, _ *apis.ComponentStatus) {
	installed := platform.Status.GetCondition(v1alpha1.Installed)
	if installed == nil {
		return
	}
	conditions := platform.Status.Manage(ctx)
	switch installed.Status {
	case metav1.ConditionTrue:
		conditions.MarkTrue(installed.Type, installed.Reason, "%s", installed.Message)
	case metav1.ConditionFalse:
		conditions.MarkFalse(installed.Type, installed.Reason, "%s", installed.Message)
	default:
		conditions.MarkUnknown(installed.Type, installed.Reason, "%s", installed.Message)
	}
}
