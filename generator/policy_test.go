package generator_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/generator"
)

func spelt[P ~string](parse func(string) (P, error)) func(string) (string, error) {
	return func(text string) (string, error) {
		policy, err := parse(text)
		return string(policy), err
	}
}

func TestParsePolicies(t *testing.T) {
	for name, tc := range map[string]struct {
		parse func(string) (string, error)
		want  map[string]string
		offer string
	}{
		"adoption": {spelt(generator.ParseAdoptionPolicy), map[string]string{
			"never": "Never", "Never": "Never", "always": "Always",
			"if-unowned": "IfUnowned", "IfUnowned": "IfUnowned", "ifUnowned": "IfUnowned", " if-unowned\n": "IfUnowned",
		}, "never, if-unowned, always"},
		"reconcile": {spelt(generator.ParseReconcilePolicy), map[string]string{
			"on-object-change": "OnObjectChange", "OnObjectChange": "OnObjectChange", "once": "Once",
			"on-object-or-component-change": "OnObjectOrComponentChange", "onObjectOrComponentChange": "OnObjectOrComponentChange",
		}, "on-object-change, on-object-or-component-change, once"},
		"update": {spelt(generator.ParseUpdatePolicy), map[string]string{
			"apply": "Apply", "ssa-merge": "Apply", "SsaMerge": "Apply", "ssaMerge": "Apply", "SSAMerge": "Apply",
			"apply-override": "ApplyOverride", "ApplyOverride": "ApplyOverride", "ssa-override": "ApplyOverride", "SsaOverride": "ApplyOverride",
			"replace": "Replace", "Recreate": "Recreate", "default": "", "Default": "",
		}, "apply, apply-override, replace, recreate"},
		"delete": {spelt(generator.ParseDeletePolicy), map[string]string{
			"delete": "Delete", "orphan": "Orphan", "orphan-on-apply": "OrphanOnApply", "OrphanOnDelete": "OrphanOnDelete", "default": "",
		}, "delete, orphan, orphan-on-apply, orphan-on-delete"},
		"prune": {spelt(generator.ParsePrunePolicy), map[string]string{
			"before": "Before", "With": "With", "after": "After",
		}, "before, with, after"},
		"missing namespaces": {spelt(generator.ParseMissingNamespacesPolicy), map[string]string{
			"create": "Create", "do-not-create": "DoNotCreate", "DoNotCreate": "DoNotCreate", "doNotCreate": "DoNotCreate",
		}, "create, do-not-create"},
	} {
		t.Run(name, func(t *testing.T) {
			for text, want := range tc.want {
				if got, err := tc.parse(text); err != nil || got != want {
					t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
				}
			}
			for _, text := range []string{"", "nonsense", "i-f-unowned", "if_unowned", "IFUNOWNED", "-", "default-", "never,always", "\xff"} {
				got, err := tc.parse(text)
				if err == nil || got != "" {
					t.Errorf("%q became %q (%v), want an error", text, got, err)
				} else if !strings.HasPrefix(err.Error(), "must be one of "+tc.offer+": ") {
					t.Errorf("%q: the error is %v, want it to offer %s", text, err, tc.offer)
				}
			}
			if _, err := tc.parse(strings.Repeat("ä", 100_000)); err == nil || len(err.Error()) > 300 {
				t.Errorf("the error is %v, want at most 300 bytes of what is too long", err)
			}
		})
	}
}

// What the API names is what the functions return.
func TestPoliciesOfTheAPIAreUnderstood(t *testing.T) {
	for _, want := range []apis.UpdatePolicy{apis.UpdateApply, apis.UpdateApplyOverride, apis.UpdateReplace, apis.UpdateRecreate} {
		if got, err := generator.ParseUpdatePolicy(string(want)); err != nil || got != want {
			t.Errorf("the policy is %q (%v), want %s", got, err, want)
		}
	}
	for _, want := range []apis.DeletePolicy{apis.DeleteDelete, apis.DeleteOrphan, apis.DeleteOrphanOnApply, apis.DeleteOrphanOnDelete} {
		if got, err := generator.ParseDeletePolicy(string(want)); err != nil || got != want {
			t.Errorf("the policy is %q (%v), want %s", got, err, want)
		}
	}
	for _, want := range []apis.AdoptionPolicy{apis.AdoptNever, apis.AdoptIfUnowned, apis.AdoptAlways} {
		if got, err := generator.ParseAdoptionPolicy(string(want)); err != nil || got != want {
			t.Errorf("the policy is %q (%v), want %s", got, err, want)
		}
	}
}
