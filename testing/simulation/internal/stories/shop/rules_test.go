package shop_test

import (
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-dev/espalier/testing/simulation"
)

// derived returns options with the rules that are derived from the tree, and no others.
func derived(t *testing.T) simulation.Options {
	t.Helper()
	options := cluster(t)
	options.Rules = simulation.ReadRules(t, "../../../../../examples/shop/config/rbac/role.yaml")
	return options
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

// TestMissingRule leaves out one rule at a time. Each time something is forbidden.
func TestMissingRule(t *testing.T) {
	t.Parallel()
	unneeded := []string{
		"events",           // lost events are no failure
		"shops/finalizers", // for the plug-in OwnerReferencesPermissionEnforcement, which is not there
	}
	for _, rule := range derived(t).Rules {
		if slices.Contains(unneeded, rule.Resources[0]) {
			continue
		}
		t.Run(rule.Resources[0], func(t *testing.T) {
			t.Parallel()
			options := derived(t)
			options.Rules = slices.DeleteFunc(options.Rules, func(r rbacv1.PolicyRule) bool {
				return r.Resources[0] == rule.Resources[0]
			})
			simulation.Run(t, options, func(w *simulation.World) {
				w.Create(newSettings(), newShop("corner"))
				w.Pass(5 * time.Minute)
				if len(w.Forbidden()) == 0 {
					w.Errorf("nothing was forbidden without %v", rule)
				}
			})
		})
	}
}
