package controller

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Namespace keeps the namespace of the tenant's name. A namespace of that name which is not the tenant's is left alone.
func Namespace(reserved []string) reconcilers.SubReconciler[*v1alpha1.Tenant] {
	return &reconcilers.ChildReconciler[*v1alpha1.Tenant, *corev1.Namespace, *corev1.NamespaceList]{
		Name: "Namespace",
		DesiredChild: func(_ context.Context, tenant *v1alpha1.Tenant) (*corev1.Namespace, error) {
			if problems := checkName(tenant, reserved); len(problems) > 0 {
				return nil, invalid(tenant, problems...)
			}
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant.Name, Labels: labelsOf(tenant)}}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.Namespace) {
			reconcilers.MergeLabels(current, desired)
		},
		ReflectChildStatusOnParent: reflectNamespace,
	}
}

// checkName finds out whether there may be a tenant of that name.
func checkName(tenant *v1alpha1.Tenant, reserved []string) field.ErrorList {
	name := tenant.Name
	if name == metav1.NamespaceDefault || strings.HasPrefix(name, "kube-") || slices.Contains(reserved, name) {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name, "is reserved")}
	}
	return nil
}

func reflectNamespace(ctx context.Context, tenant *v1alpha1.Tenant, namespace *corev1.Namespace, err error) {
	if err == nil && namespace.DeletionTimestamp != nil {
		tenant.Status.Manage(ctx).MarkFalse(v1alpha1.NamespaceReady, "Terminating",
			"the namespace is made anew when it is gone")
		return
	}
	reflected[*corev1.Namespace](v1alpha1.NamespaceReady, "Present", "Absent")(ctx, tenant, namespace, err)
}
