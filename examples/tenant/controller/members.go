package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Members keeps the RoleBinding that lets the members do what their role says.
//
// The role of a binding cannot be changed, so a binding to another role is deleted first: its going brings the tenant
// back, and then the new one is made.
func Members() reconcilers.SubReconciler[*v1alpha1.Tenant] {
	return &reconcilers.ChildReconciler[*v1alpha1.Tenant, *rbacv1.RoleBinding, *rbacv1.RoleBindingList]{
		Name: "Members",
		DesiredChild: func(ctx context.Context, tenant *v1alpha1.Tenant) (*rbacv1.RoleBinding, error) {
			desired, err := bindingOf(tenant, defaultsStash.RetrieveOrDie(ctx).Roles)
			if err != nil || desired == nil {
				return nil, err
			}
			replaced, err := bindsAnotherRole(ctx, tenant, desired)
			if err != nil || replaced {
				return nil, err
			}
			return desired, nil
		},
		MergeBeforeUpdate: func(current, desired *rbacv1.RoleBinding) {
			mergeLabels(current, desired)
			current.Subjects = desired.Subjects
		},
		ReflectChildStatusOnParent: reflectMembers,
	}
}

// bindingOf returns nil for a tenant without members.
func bindingOf(tenant *v1alpha1.Tenant, roles map[string]string) (*rbacv1.RoleBinding, error) {
	if len(tenant.Spec.Members) == 0 {
		return nil, nil
	}
	clusterRole, ok := roles[tenant.Spec.Role]
	if !ok {
		return nil, invalid(tenant, field.NotSupported(field.NewPath("spec", "role"), tenant.Spec.Role, slices.Sorted(maps.Keys(roles))))
	}
	subjects := make([]rbacv1.Subject, 0, len(tenant.Spec.Members))
	for _, member := range tenant.Spec.Members {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: member.Kind, Name: member.Name})
	}
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Name, Name: "members", Labels: labelsOf(tenant)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
		Subjects:   subjects,
	}, nil
}

// bindsAnotherRole tells whether the tenant's binding is one that desired cannot be made of.
func bindsAnotherRole(ctx context.Context, tenant *v1alpha1.Tenant, desired *rbacv1.RoleBinding) (bool, error) {
	var current rbacv1.RoleBinding
	err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, client.ObjectKeyFromObject(desired), &current)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("unable to read the RoleBinding of the members: %w", err)
	}
	return metav1.IsControlledBy(&current, tenant) && current.RoleRef != desired.RoleRef, nil
}

func reflectMembers(ctx context.Context, tenant *v1alpha1.Tenant, binding *rbacv1.RoleBinding, err error) {
	if err == nil && binding == nil && len(tenant.Spec.Members) > 0 {
		tenant.Status.Manage(ctx).MarkUnknown(v1alpha1.MembersReady, "RoleChanging", "the members lose their old role before they get the new one")
		return
	}
	reflected[*rbacv1.RoleBinding](v1alpha1.MembersReady, "Bound", "NoMembers")(ctx, tenant, binding, err)
}
