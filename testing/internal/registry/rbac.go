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
	errs := validateBinding(&b.RoleRef, b.Subjects, true)
	if old != nil && b.RoleRef != old.RoleRef {
		errs = append(errs, changedRole(&b.RoleRef))
	}
	return errs
}

func validateClusterRoleBinding(b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
	errs := validateBinding(&b.RoleRef, b.Subjects, false)
	if old != nil && b.RoleRef != old.RoleRef {
		errs = append(errs, changedRole(&b.RoleRef))
	}
	return errs
}

func changedRole(role *rbacv1.RoleRef) *field.Error {
	return field.Invalid(field.NewPath("roleRef"), *role, "cannot change roleRef")
}

// validateBinding requires a role, and subjects that can be found. A binding in a namespace may be to a role there.
func validateBinding(role *rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool) field.ErrorList {
	kinds := []string{"ClusterRole"}
	if namespaced {
		kinds = append(kinds, "Role")
	}
	at := field.NewPath("roleRef")
	errs := supported(at.Child("apiGroup"), role.APIGroup, rbacv1.GroupName)
	errs = append(errs, supported(at.Child("kind"), role.Kind, kinds...)...)
	if role.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	} else {
		errs = append(errs, invalid(at.Child("name"), role.Name, segmentName(role.Name, false))...)
	}
	for i := range subjects {
		errs = append(errs, validateSubject(&subjects[i], namespaced, field.NewPath("subjects").Index(i))...)
	}
	return errs
}

func validateSubject(s *rbacv1.Subject, namespaced bool, at *field.Path) field.ErrorList {
	errs := supported(at.Child("kind"), s.Kind, rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind)
	if s.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	if len(errs) > 0 {
		return errs
	}
	if s.Kind != rbacv1.ServiceAccountKind {
		return supported(at.Child("apiGroup"), s.APIGroup, rbacv1.GroupName)
	}
	errs = append(invalid(at.Child("name"), s.Name, subdomainName(s.Name, false)),
		supported(at.Child("apiGroup"), s.APIGroup, "")...)
	if s.Namespace == "" && !namespaced {
		errs = append(errs, field.Required(at.Child("namespace"), ""))
	}
	return errs
}

func validateRole(r, _ *rbacv1.Role) field.ErrorList { return validatePolicyRules(r.Rules, true) }

func validateClusterRole(r, _ *rbacv1.ClusterRole) field.ErrorList {
	errs := validatePolicyRules(r.Rules, false)
	if r.AggregationRule == nil {
		return errs
	}
	at, selectors := field.NewPath("aggregationRule", "clusterRoleSelectors"), r.AggregationRule.ClusterRoleSelectors
	if len(selectors) == 0 {
		errs = append(errs,
			field.Required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	for i := range selectors {
		errs = append(errs, validateSelector(&selectors[i], at.Index(i))...)
	}
	return errs
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
