package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
)

// roleAuthorizer allows what the roles allow that are bound to a user, see "Using RBAC Authorization" in the Kubernetes
// documentation. The group system:masters may do everything.
type roleAuthorizer struct {
	clusterRoles    rbaclisters.ClusterRoleLister
	clusterBindings rbaclisters.ClusterRoleBindingLister
	roles           rbaclisters.RoleLister
	bindings        rbaclisters.RoleBindingLister
}

var _ authorizer.Authorizer = &roleAuthorizer{}

// newRoleAuthorizer returns an authorizer that reads the roles from informers of the factory.
func newRoleAuthorizer(factory informers.SharedInformerFactory) *roleAuthorizer {
	rbac := factory.Rbac().V1()
	return &roleAuthorizer{
		clusterRoles: rbac.ClusterRoles().Lister(), clusterBindings: rbac.ClusterRoleBindings().Lister(),
		roles: rbac.Roles().Lister(), bindings: rbac.RoleBindings().Lister(),
	}
}

// Authorize implements [authorizer.UnconditionalAuthorizer].
func (a *roleAuthorizer) Authorize(
	_ context.Context, request authorizer.Attributes,
) (authorizer.Decision, string, error) {
	who := request.GetUser()
	if isMaster(who) {
		return authorizer.DecisionAllow, "", nil
	}
	rules, problems := a.rulesOf(who, request.GetNamespace())
	if slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return allows(rule, request) }) {
		return authorizer.DecisionAllow, "", nil
	}
	reason := ""
	if len(problems) > 0 {
		reason = fmt.Sprintf("RBAC: %v", problems)
	}
	return authorizer.DecisionNoOpinion, reason, nil
}

// ConditionsAwareAuthorize implements [authorizer.Authorizer]. There are no conditions.
func (a *roleAuthorizer) ConditionsAwareAuthorize(
	ctx context.Context, request authorizer.Attributes,
) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, request))
}

// EvaluateConditions implements [authorizer.Authorizer].
func (a *roleAuthorizer) EvaluateConditions(
	context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData,
) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

func isMaster(who user.Info) bool {
	return who != nil && slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup)
}

// rulesOf returns the rules that a user has in a namespace, those for the whole cluster included, and which of the
// roles bound to the user do not exist. An empty namespace is the whole cluster.
func (a *roleAuthorizer) rulesOf(who user.Info, namespace string) (rules []rbacv1.PolicyRule, problems []string) {
	add := func(ref rbacv1.RoleRef, namespace string) {
		found, err := a.rulesFor(ref, namespace)
		if err != nil {
			problems = append(problems, err.Error())
		}
		rules = append(rules, found...)
	}
	clusterBindings, _ := a.clusterBindings.List(labels.Everything())
	for _, binding := range clusterBindings {
		if concerns(binding.Subjects, who, "") {
			add(binding.RoleRef, "")
		}
	}
	if namespace != "" {
		bindings, _ := a.bindings.RoleBindings(namespace).List(labels.Everything())
		for _, binding := range bindings {
			if concerns(binding.Subjects, who, namespace) {
				add(binding.RoleRef, namespace)
			}
		}
	}
	slices.Sort(problems)
	return rules, problems
}

// rulesFor returns the rules of a role. A Role is in the namespace of its binding.
func (a *roleAuthorizer) rulesFor(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	if ref.Kind == "ClusterRole" {
		role, err := a.clusterRoles.Get(ref.Name)
		if err != nil {
			return nil, err
		}
		return role.Rules, nil
	}
	role, err := a.roles.Roles(namespace).Get(ref.Name)
	if err != nil {
		return nil, err
	}
	return role.Rules, nil
}

// concerns reports whether a user is one of the subjects. A service account without a namespace is in that of the
// binding.
func concerns(subjects []rbacv1.Subject, who user.Info, namespace string) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.UserKind:
			return s.Name == who.GetName()
		case rbacv1.GroupKind:
			return slices.Contains(who.GetGroups(), s.Name)
		case rbacv1.ServiceAccountKind:
			in := s.Namespace
			if in == "" {
				in = namespace
			}
			return in != "" && serviceaccount.MakeUsername(in, s.Name) == who.GetName()
		}
		return false
	})
}

// allows reports whether a rule allows a request.
func allows(rule rbacv1.PolicyRule, request authorizer.Attributes) bool {
	if !has(rule.Verbs, request.GetVerb()) {
		return false
	}
	if !request.IsResourceRequest() {
		return slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool {
			return matchesURL(pattern, request.GetPath())
		})
	}
	resource := request.GetResource()
	if request.GetSubresource() != "" {
		resource += "/" + request.GetSubresource()
	}
	return has(rule.APIGroups, request.GetAPIGroup()) && hasResource(rule.Resources, resource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, request.GetName()))
}

// has reports whether a list has a value, or stands for all.
func has(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// hasResource reports whether a list has a resource, or a subresource written as resource/subresource.
func hasResource(list []string, resource string) bool {
	_, subresource, ok := strings.Cut(resource, "/")
	return has(list, resource) || ok && slices.Contains(list, "*/"+subresource)
}

func matchesURL(pattern, path string) bool {
	prefix, ok := strings.CutSuffix(pattern, "*")
	return pattern == path || ok && strings.HasPrefix(path, prefix)
}
