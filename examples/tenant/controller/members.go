package controller

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/reconcilers"
)

// Members keeps a RoleBinding for each member, which lets the member do what the role says.
//
// The role of a binding cannot be changed, so it is part of the binding's identity: a member who gets another role gets
// another binding, and loses the one before.
//
// While any role is not known, no member gets or loses anything: a typing error must not lock people out.
func Members() reconcilers.SubReconciler[*v1alpha1.Tenant] {
	return &reconcilers.ChildSetReconciler[*v1alpha1.Tenant, *rbacv1.RoleBinding, *rbacv1.RoleBindingList]{
		Name: "Members",
		DesiredChildren: func(ctx context.Context, tenant *v1alpha1.Tenant) ([]*rbacv1.RoleBinding, error) {
			bindings, problems := bindingsOf(tenant, defaultsStash.RetrieveOrDie(ctx).Roles)
			if len(problems) > 0 {
				return nil, reconcilers.OnlyReconcileChildStatus
			}
			return bindings, nil
		},
		IdentifyChild: identityOf,
		MergeBeforeUpdate: func(current, desired *rbacv1.RoleBinding) {
			reconcilers.MergeLabels(current, desired)
			current.Subjects = desired.Subjects
		},
		ReflectChildrenStatusOnParent: reflectMembers,
	}
}

// bindingsOf finds all roles that are not known, in the order of the members.
func bindingsOf(tenant *v1alpha1.Tenant, roles map[string]string) ([]*rbacv1.RoleBinding, field.ErrorList) {
	var bindings []*rbacv1.RoleBinding
	var problems field.ErrorList
	spec := field.NewPath("spec")
	for i, member := range tenant.Spec.Members {
		path, role := spec.Child("role"), tenant.Spec.Role
		if member.Role != "" {
			path, role = spec.Child("members").Index(i).Child("role"), member.Role
		}
		clusterRole, ok := roles[role]
		if !ok {
			problems = append(problems, field.NotSupported(path, role, slices.Sorted(maps.Keys(roles))))
			continue
		}
		bindings = append(bindings, bindingOf(tenant, member, clusterRole))
	}
	return bindings, problems
}

func bindingOf(tenant *v1alpha1.Tenant, member v1alpha1.Member, clusterRole string) *rbacv1.RoleBinding {
	name := bindingName(identity(member.Kind, clusterRole, member.Name))
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Name, Name: name, Labels: labelsOf(tenant)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: member.Kind, Name: member.Name}},
	}
}

// identity says who may do what. The name comes last, as members may be called anything.
func identity(kind, clusterRole, name string) string {
	return strings.Join([]string{kind, clusterRole, name}, "/")
}

// identityOf reads the identity of a binding from it. A binding that a user has turned into another one has none, and
// makes way.
func identityOf(binding *rbacv1.RoleBinding) string {
	if len(binding.Subjects) != 1 {
		return ""
	}
	id := identity(binding.Subjects[0].Kind, binding.RoleRef.Name, binding.Subjects[0].Name)
	if binding.Name != bindingName(id) {
		return ""
	}
	return id
}

func bindingName(identity string) string {
	hash := sha256.Sum256([]byte(identity))
	return fmt.Sprintf("member-%x", hash[:8])
}

func reflectMembers(
	ctx context.Context, tenant *v1alpha1.Tenant, result reconcilers.ChildSetResult[*rbacv1.RoleBinding],
) {
	conditions := tenant.Status.Manage(ctx)
	err := result.AggregateError()
	if _, problems := bindingsOf(tenant, defaultsStash.RetrieveOrDie(ctx).Roles); len(problems) > 0 {
		err = invalid(tenant, problems...)
	}
	switch {
	case err != nil:
		reason, message := explain(err)
		conditions.MarkFalse(v1alpha1.MembersReady, reason, "%s", message)
	case len(tenant.Spec.Members) == 0:
		conditions.MarkTrue(v1alpha1.MembersReady, "NoMembers", "")
	default:
		conditions.MarkTrue(v1alpha1.MembersReady, "Bound", "")
	}
}
