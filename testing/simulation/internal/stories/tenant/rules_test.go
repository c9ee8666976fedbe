package tenant_test

import (
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/examples/tenant/api/v1alpha1"
	"github.com/espalier-dev/espalier/testing/simulation"
	"github.com/espalier-dev/espalier/testing/simulation/internal/stories"
)

const roles = "../../../../../examples/tenant/config/rbac/"

// derived returns options with the rules that are derived from the tree, in the namespace of the administrators too.
func derived(t *testing.T) simulation.Options {
	t.Helper()
	options := cluster(t)
	options.Rules = simulation.ReadRules(t, roles+"role.yaml", roles+"hub_role.yaml", roles+"bind_role.yaml")
	text, err := os.ReadFile(roles + "registry_role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	registry := &rbacv1.Role{}
	if err := yaml.UnmarshalStrict(text, registry); err != nil {
		t.Fatal(err)
	}
	registry.Namespace = platform
	options.Objects = append(slices.Clone(options.Objects), registry, &rbacv1.RoleBinding{
		ObjectMeta: stories.Named(platform, "registry"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: registry.Name},
		Subjects: []rbacv1.Subject{
			{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: simulation.ServiceAccount},
		},
	})
	// These are in each cluster, and let their subjects do what the operator may not do.
	for _, name := range []string{"admin", "edit", "view"} {
		options.Objects = append(options.Objects, &rbacv1.ClusterRole{
			ObjectMeta: stories.Named("", name),
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
		})
	}
	return options
}

// change has the operator create, change and delete objects of all its kinds.
func change(w *simulation.World) {
	acme := newTenant("acme")
	acme.Spec.Isolated = true
	acme.Spec.Members = []v1alpha1.Member{{Kind: "User", Name: "ann", Role: "guest"}}
	w.Create(acme)
	w.Rest()
	isReady(w, acme)
	someone := w.As("someone")
	namespace := &corev1.Namespace{ObjectMeta: stories.Named("", "acme")}
	someone.Update(namespace, func() { clear(namespace.Labels) })
	drifted := limits("acme")
	someone.Update(drifted, func() { drifted.Spec.Limits = nil })
	overdrawn := quota("acme")
	someone.Update(overdrawn, func() { overdrawn.Spec.Hard = nil })
	w.Rest()
	w.Update(acme, func() { acme.Spec.Isolated, acme.Spec.Members = false, nil })
	w.Rest()
	isReady(w, acme)
	w.Delete(acme)
	w.Rest()
	if w.Exists(acme) {
		w.Error("the tenant does not go")
	}
}

func TestDerivedRules(t *testing.T) {
	t.Parallel()
	simulation.Run(t, derived(t), func(w *simulation.World) {
		change(w)
		for _, request := range w.Forbidden() {
			w.Errorf("forbidden: %s", request)
		}
	})
}

// unneeded reports whether the story needs no rule with an index: another one has the same, or it is for what the
// simulation does not check.
func unneeded(rules []rbacv1.PolicyRule, i int) bool {
	switch rules[i].Resources[0] {
	case "events", // lost events are no failure
		"tenants/finalizers": // for the plug-in OwnerReferencesPermissionEnforcement, which is not there
		return true
	}
	return slices.ContainsFunc(slices.Delete(slices.Clone(rules), i, i+1), func(other rbacv1.PolicyRule) bool {
		return equality.Semantic.DeepEqual(other, rules[i])
	})
}

// TestMissingRule leaves out one rule at a time. Each time something is forbidden.
func TestMissingRule(t *testing.T) {
	t.Parallel()
	rules := derived(t).Rules
	for i, rule := range rules {
		if unneeded(rules, i) {
			continue
		}
		t.Run(rule.Resources[0], func(t *testing.T) {
			t.Parallel()
			options := derived(t)
			options.Rules = slices.Delete(options.Rules, i, i+1)
			simulation.Run(t, options, func(w *simulation.World) {
				w.Create(newTenant("acme"))
				w.Pass(5 * time.Minute)
				if len(w.Forbidden()) == 0 {
					w.Errorf("nothing was forbidden without %v", rule)
				}
			})
		})
	}
}
