package server

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// escalation refuses that a user grants what the user may not do, see "Privilege escalation prevention and
// bootstrapping" in the Kubernetes documentation.
type escalation struct {
	*admission.Handler
	roles *roleAuthorizer
}

var _ admission.ValidationInterface = escalation{}

func newEscalation(roles *roleAuthorizer) escalation {
	return escalation{admission.NewHandler(admission.Create, admission.Update), roles}
}

// Validate implements [admission.ValidationInterface].
func (e escalation) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Group != rbacv1.GroupName || isMaster(a.GetUserInfo()) {
		return nil
	}
	rules, ref, ok := granted(a.GetObject())
	if !ok {
		return nil
	}
	if oldRules, oldRef, ok := granted(a.GetOldObject()); ok && ref == oldRef &&
		equality.Semantic.DeepEqual(rules, oldRules) && sameSubjects(a.GetObject(), a.GetOldObject()) {
		return nil
	}
	verb, resource, name := "escalate", a.GetResource().Resource, a.GetName()
	if ref != (rbacv1.RoleRef{}) {
		verb, resource, name = "bind", "roles", ref.Name
		if ref.Kind == "ClusterRole" {
			resource = "clusterroles"
		}
	}
	decision, _, err := e.roles.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: verb, Namespace: a.GetNamespace(), APIGroup: rbacv1.GroupName, APIVersion: "*",
		Resource: resource, Name: name, ResourceRequest: true,
	})
	if err != nil || decision == authorizer.DecisionAllow {
		return err
	}
	if verb == "bind" {
		// Who may bind a role may do so before it exists.
		if rules, err = e.roles.rulesFor(ref, a.GetNamespace()); err != nil {
			return err
		}
	}
	own, _ := e.roles.rulesOf(a.GetUserInfo(), a.GetNamespace())
	if missing := uncovered(own, rules); len(missing) > 0 {
		return admission.NewForbidden(a, fmt.Errorf(
			"user %q (groups=%q) is attempting to grant RBAC permissions not currently held: %v",
			a.GetUserInfo().GetName(), a.GetUserInfo().GetGroups(), missing))
	}
	return nil
}

// granted returns the rules of a role, or what a binding refers to.
func granted(obj runtime.Object) ([]rbacv1.PolicyRule, rbacv1.RoleRef, bool) {
	switch o := obj.(type) {
	case *rbacv1.Role:
		return o.Rules, rbacv1.RoleRef{}, true
	case *rbacv1.ClusterRole:
		return o.Rules, rbacv1.RoleRef{}, true
	case *rbacv1.RoleBinding:
		return nil, o.RoleRef, true
	case *rbacv1.ClusterRoleBinding:
		return nil, o.RoleRef, true
	}
	return nil, rbacv1.RoleRef{}, false
}

// sameSubjects reports whether two bindings are for the same subjects. Roles have none.
func sameSubjects(obj, old runtime.Object) bool {
	switch o := obj.(type) {
	case *rbacv1.RoleBinding:
		return equality.Semantic.DeepEqual(o.Subjects, old.(*rbacv1.RoleBinding).Subjects)
	case *rbacv1.ClusterRoleBinding:
		return equality.Semantic.DeepEqual(o.Subjects, old.(*rbacv1.ClusterRoleBinding).Subjects)
	}
	return true
}

// uncovered returns the parts of rules that no own rule covers. Each has one verb, and one resource or URL.
func uncovered(own, rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var missing []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, part := range parts(rule) {
			if !slices.ContainsFunc(own, func(o rbacv1.PolicyRule) bool { return covers(o, part) }) {
				missing = append(missing, part)
			}
		}
	}
	return missing
}

// parts returns rules with one item in each list, which allow the same as a rule together.
func parts(rule rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, verb := range rule.Verbs {
		for _, url := range rule.NonResourceURLs {
			all = append(all, rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: []string{url}})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				part := rbacv1.PolicyRule{
					Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource},
				}
				if len(rule.ResourceNames) == 0 {
					all = append(all, part)
				}
				for _, name := range rule.ResourceNames {
					part.ResourceNames = []string{name}
					all = append(all, part)
				}
			}
		}
	}
	return all
}

// covers reports whether a rule allows all that a part of a rule allows.
func covers(own, part rbacv1.PolicyRule) bool {
	if !has(own.Verbs, part.Verbs[0]) {
		return false
	}
	if len(part.NonResourceURLs) > 0 {
		return slices.ContainsFunc(own.NonResourceURLs, func(pattern string) bool {
			return matchesURL(pattern, part.NonResourceURLs[0])
		})
	}
	return has(own.APIGroups, part.APIGroups[0]) && hasResource(own.Resources, part.Resources[0]) &&
		(len(own.ResourceNames) == 0 ||
			len(part.ResourceNames) > 0 && slices.Contains(own.ResourceNames, part.ResourceNames[0]))
}
