package edit

import (
	"cmp"
	"errors"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Role is a type with rules.
type Role interface {
	*rbacv1.Role | *rbacv1.ClusterRole
}

// Binding is a type with subjects.
type Binding interface {
	*rbacv1.RoleBinding | *rbacv1.ClusterRoleBinding
}

// EnsureRule makes a role have a rule. If it has a rule with the same contents, in any order, nothing changes. Else the
// rule is appended.
func EnsureRule[R Role](role R, rule rbacv1.PolicyRule) error {
	rules := rulesOf(role)
	switch {
	case rules == nil:
		return missing("role")
	case len(rule.Verbs) == 0:
		return errors.New("the rule has no verbs")
	}
	if !slices.ContainsFunc(*rules, sameRule(rule)) {
		*rules = append(slices.Clone(*rules), *rule.DeepCopy())
	}
	return nil
}

// RemoveRule makes a role have no rule with the same contents, in any order. It takes nothing from a rule that grants
// more.
func RemoveRule[R Role](role R, rule rbacv1.PolicyRule) error {
	rules := rulesOf(role)
	if rules == nil {
		return missing("role")
	}
	*rules = remove(*rules, sameRule(rule))
	return nil
}

// rulesOf returns nil for a nil role.
func rulesOf[R Role](role R) *[]rbacv1.PolicyRule {
	switch r := any(role).(type) {
	case *rbacv1.Role:
		if r != nil {
			return &r.Rules
		}
	case *rbacv1.ClusterRole:
		if r != nil {
			return &r.Rules
		}
	}
	return nil
}

func sameRule(rule rbacv1.PolicyRule) func(rbacv1.PolicyRule) bool {
	return func(other rbacv1.PolicyRule) bool {
		return sameSet(rule.APIGroups, other.APIGroups) && sameSet(rule.Resources, other.Resources) &&
			sameSet(rule.Verbs, other.Verbs) && sameSet(rule.ResourceNames, other.ResourceNames) &&
			sameSet(rule.NonResourceURLs, other.NonResourceURLs)
	}
}

func sameSet(a, b []string) bool {
	set := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	return slices.Equal(set(a), set(b))
}

// EnsureSubject makes a binding have a subject. If it has it already, nothing changes. Else the subject is appended.
// The API group may be left out.
func EnsureSubject[B Binding](binding B, subject rbacv1.Subject) error {
	subjects := subjectsOf(binding)
	switch {
	case subjects == nil:
		return missing("binding")
	case subject.Kind == "" || subject.Name == "":
		return errors.New("the subject needs a kind and a name")
	}
	if !slices.ContainsFunc(*subjects, sameSubject(subject)) {
		*subjects = append(slices.Clone(*subjects), subject)
	}
	return nil
}

// RemoveSubject makes a binding not have a subject. The API group may be left out.
func RemoveSubject[B Binding](binding B, subject rbacv1.Subject) error {
	subjects := subjectsOf(binding)
	if subjects == nil {
		return missing("binding")
	}
	*subjects = remove(*subjects, sameSubject(subject))
	return nil
}

// subjectsOf returns nil for a nil binding.
func subjectsOf[B Binding](binding B) *[]rbacv1.Subject {
	switch b := any(binding).(type) {
	case *rbacv1.RoleBinding:
		if b != nil {
			return &b.Subjects
		}
	case *rbacv1.ClusterRoleBinding:
		if b != nil {
			return &b.Subjects
		}
	}
	return nil
}

func sameSubject(subject rbacv1.Subject) func(rbacv1.Subject) bool {
	// The group that the API server sets.
	groupOf := func(s rbacv1.Subject) string {
		if s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind {
			return cmp.Or(s.APIGroup, rbacv1.GroupName)
		}
		return s.APIGroup
	}
	return func(other rbacv1.Subject) bool {
		return subject.Kind == other.Kind && subject.Name == other.Name && subject.Namespace == other.Namespace &&
			groupOf(subject) == groupOf(other)
	}
}
