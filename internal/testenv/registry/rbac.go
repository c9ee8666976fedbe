package registry

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completeRoleBinding sets the defaults of the Kubernetes API reference, RoleRef and Subject v1
// rbac.authorization.k8s.io.
func completeRoleBinding(b, _ *rbacv1.RoleBinding) { completeBinding(&b.RoleRef, b.Subjects) }

// completeClusterRoleBinding sets the same defaults.
func completeClusterRoleBinding(b, _ *rbacv1.ClusterRoleBinding) {
	completeBinding(&b.RoleRef, b.Subjects)
}

func completeBinding(role *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	setIfZero(&role.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if subjects[i].Kind != rbacv1.ServiceAccountKind {
			setIfZero(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

func validateRoleBinding(b, old *rbacv1.RoleBinding) field.ErrorList {
	errs := validateBinding(&b.RoleRef, b.Subjects, "Role", "ClusterRole")
	if old != nil && b.RoleRef != old.RoleRef {
		errs = append(errs, changedRole(&b.RoleRef))
	}
	return errs
}

func validateClusterRoleBinding(b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
	errs := validateBinding(&b.RoleRef, b.Subjects, "ClusterRole")
	if old != nil && b.RoleRef != old.RoleRef {
		errs = append(errs, changedRole(&b.RoleRef))
	}
	return errs
}

func changedRole(role *rbacv1.RoleRef) *field.Error {
	return field.Invalid(field.NewPath("roleRef"), *role, "cannot change roleRef")
}

// validateBinding requires a role of one of the kinds, and subjects that can be found.
func validateBinding(role *rbacv1.RoleRef, subjects []rbacv1.Subject, kinds ...string) field.ErrorList {
	at := field.NewPath("roleRef")
	errs := oneOf(at.Child("apiGroup"), role.APIGroup, rbacv1.GroupName)
	errs = append(errs, oneOf(at.Child("kind"), role.Kind, kinds...)...)
	if role.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	} else {
		errs = append(errs, invalid(at.Child("name"), role.Name, segmentName(role.Name, false))...)
	}
	for i := range subjects {
		errs = append(errs, validateSubject(&subjects[i], field.NewPath("subjects").Index(i))...)
	}
	return errs
}

func validateSubject(s *rbacv1.Subject, at *field.Path) field.ErrorList {
	if s.Name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "")}
	}
	errs := oneOf(at.Child("kind"), s.Kind, rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind)
	if len(errs) > 0 {
		return errs
	}
	group := rbacv1.GroupName
	if s.Kind == rbacv1.ServiceAccountKind {
		group = ""
		errs = append(errs, invalid(at.Child("name"), s.Name, subdomainName(s.Name, false))...)
		if s.Namespace == "" {
			errs = append(errs, field.Required(at.Child("namespace"), ""))
		}
	}
	if s.APIGroup != group {
		errs = append(errs, field.NotSupported(at.Child("apiGroup"), s.APIGroup, []string{group}))
	}
	return errs
}

func validateRole(r, _ *rbacv1.Role) field.ErrorList { return validatePolicyRules(r.Rules, true) }

func validateClusterRole(r, _ *rbacv1.ClusterRole) field.ErrorList {
	return validatePolicyRules(r.Rules, false)
}

const atLeastOne = "must have at least one value"

// validatePolicyRules requires rules that allow something, see "Role and ClusterRole" in the documentation of RBAC.
func validatePolicyRules(rules []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i, rule := range rules {
		at := field.NewPath("rules").Index(i)
		if len(rule.Verbs) == 0 {
			errs = append(errs, field.Required(at.Child("verbs"), atLeastOne))
		}
		if len(rule.NonResourceURLs) > 0 {
			if namespaced {
				errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), rule.NonResourceURLs,
					"namespaced rules cannot apply to non-resource URLs"))
			}
			if len(rule.APIGroups) > 0 || len(rule.Resources) > 0 || len(rule.ResourceNames) > 0 {
				errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), rule.NonResourceURLs,
					"rules cannot apply to both regular resources and non-resource URLs"))
			}
			continue
		}
		if len(rule.APIGroups) == 0 {
			errs = append(errs, field.Required(at.Child("apiGroups"), atLeastOne))
		}
		if len(rule.Resources) == 0 {
			errs = append(errs, field.Required(at.Child("resources"), atLeastOne))
		}
	}
	return errs
}
