package simulation

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// copyRules are what the operator of copies does.
func copyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"watch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"watch", "create", "update"}},
	}
}

func copyStory(w *World) {
	a := original("a", "1")
	w.Create(a)
	w.Rest()
	isCopied(w, "a", "1")
	w.Update(a, func() { a.Data["key"] = "2" })
	w.Rest()
	isCopied(w, "a", "2")
	for _, request := range w.Forbidden() {
		w.Errorf("forbidden: %s", request)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	Run(t, Options{Operator: copies, Rules: copyRules()}, copyStory)
}

// TestMissingRules leaves out one verb at a time.
func TestMissingRules(t *testing.T) {
	t.Parallel()
	for i, rule := range copyRules() {
		for _, verb := range rule.Verbs {
			t.Run(verb+" "+rule.Resources[0], func(t *testing.T) {
				t.Parallel()
				rules := copyRules()
				rules[i].Verbs = slices.DeleteFunc(rules[i].Verbs, func(v string) bool { return v == verb })
				rules = slices.DeleteFunc(rules, func(r rbacv1.PolicyRule) bool { return len(r.Verbs) == 0 })
				says := []string{
					"forbidden: operator watch", "What happened:", "operator watch", "→ 403",
				}
				if verb != "watch" {
					says = []string{
						"forbidden: operator " + verb + " Secret default/a", "What happened:",
						"operator " + verb + " Secret default/a → 403",
						`operator error: Reconciler error: ConfigMap default/a: secrets`,
						`User "system:serviceaccount:default:operator" cannot ` + verb + ` resource "secrets"`,
					}
				}
				fails(t, Options{Operator: copies, Rules: rules}, copyStory, says...)
			})
		}
	}
}

// TestNoRules has an operator that may do nothing but what roles among the objects allow.
func TestNoRules(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Namespace: "default", Name: "more"}
	create := func(ctx context.Context, mgr ctrl.Manager) error {
		return mgr.GetClient().Create(ctx, original(rest.CopyConfig(mgr.GetConfig()).UserAgent, ""))
	}
	options := Options{Operator: create, Rules: []rbacv1.PolicyRule{}}
	fails(t, options, func(w *World) {
		w.Rest()
		w.Get(original("operator", ""))
	}, "operator create ConfigMap default/operator → 403", "the process ends: configmaps is forbidden")
	options.Objects = []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "more"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: ServiceAccount}},
		},
	}
	Run(t, options, func(w *World) {
		w.Rest()
		w.Get(original("operator", ""))
	})
}

// TestImpersonation has an operator that works as somebody else.
func TestImpersonation(t *testing.T) {
	t.Parallel()
	options := Options{Rules: []rbacv1.PolicyRule{}, Operator: func(ctx context.Context, mgr ctrl.Manager) error {
		config := rest.CopyConfig(mgr.GetConfig())
		config.Impersonate.UserName = "system:serviceaccount:default:deployer"
		c, err := client.New(config, client.Options{Mapper: mgr.GetRESTMapper()})
		if err != nil {
			return err
		}
		return client.IgnoreAlreadyExists(c.Create(ctx, original("a", "")))
	}}
	story := func(w *World) {
		w.Create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "deployer"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
		}})
		w.Create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "deployer"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "deployer"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "deployer"}},
		})
		w.Rest()
		if !w.Exists(&corev1.ConfigMap{ObjectMeta: original("a", "").ObjectMeta}) {
			w.Error("the operator created nothing")
		}
	}
	fails(t, options, story, "operator does not start: 5 processes", "the operator created nothing",
		"operator create ConfigMap default/a → 403", "the process ends:", "cannot impersonate")
	options.Rules = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}},
	}
	Run(t, options, story)
}
