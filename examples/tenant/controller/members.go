package controller

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
)

// Members keeps a RoleBinding for each member, which lets the member do what the role says.
//
// The role of a binding cannot be changed, so it is part of the binding's name: a member who gets another role gets
// another binding, and loses the one before. A binding whose role a user has changed all the same is made anew.
//
// While any role is not known, no member gets or loses anything: a typing error must not lock people out.
func Members() node {
	return espalier.OwnsEach("Members", desiredMembers).Recreates().Reports(v1alpha1.MembersReady)
}

func desiredMembers(ctx context.Context, tenant *v1alpha1.Tenant) ([]*rbacv1.RoleBinding, error) {
	bindings, problems := bindingsOf(tenant, defaultsStash.RetrieveOrDie(ctx).Roles)
	return bindings, invalid(problems)
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
	return &rbacv1.RoleBinding{
		ObjectMeta: partMeta(tenant, bindingName(member, clusterRole)),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: member.Kind, Name: member.Name}},
	}
}

// bindingName says who may do what. The name of the member comes last, as members may be called anything.
func bindingName(member v1alpha1.Member, clusterRole string) string {
	hash := sha256.Sum256([]byte(member.Kind + "/" + clusterRole + "/" + member.Name))
	return fmt.Sprintf("member-%x", hash[:8])
}
