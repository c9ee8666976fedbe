package component

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/espalier-dev/espalier/apis"
)

// The policies are part of the inventory, and so of package apis.
type (
	AdoptionPolicy          = apis.AdoptionPolicy
	ReconcilePolicy         = apis.ReconcilePolicy
	UpdatePolicy            = apis.UpdatePolicy
	DeletePolicy            = apis.DeletePolicy
	PrunePolicy             = apis.PrunePolicy
	MissingNamespacesPolicy = apis.MissingNamespacesPolicy
)

// choice is a value and the word for it, in kebab case.
type choice[P ~string] struct {
	word  string
	value P
}

// A word that follows another one for the same value is accepted, but not listed in errors.
var (
	adoptionPolicies = []choice[AdoptionPolicy]{
		{"never", apis.AdoptNever},
		{"if-unowned", apis.AdoptIfUnowned},
		{"always", apis.AdoptAlways},
	}
	reconcilePolicies = []choice[ReconcilePolicy]{
		{"on-object-change", apis.ReconcileOnObjectChange},
		{"on-object-or-component-change", apis.ReconcileOnObjectOrComponentChange},
		{"once", apis.ReconcileOnce},
	}
	updatePolicies = []choice[UpdatePolicy]{
		{"apply", apis.UpdateApply},
		{"ssa-merge", apis.UpdateApply},
		{"apply-override", apis.UpdateApplyOverride},
		{"ssa-override", apis.UpdateApplyOverride},
		{"replace", apis.UpdateReplace},
		{"recreate", apis.UpdateRecreate},
		{"default", ""},
	}
	deletePolicies = []choice[DeletePolicy]{
		{"delete", apis.DeleteDelete},
		{"orphan", apis.DeleteOrphan},
		{"orphan-on-apply", apis.DeleteOrphanOnApply},
		{"orphan-on-delete", apis.DeleteOrphanOnDelete},
		{"default", ""},
	}
	prunePolicies = []choice[PrunePolicy]{
		{"before", apis.PruneBefore},
		{"with", apis.PruneWith},
		{"after", apis.PruneAfter},
	}
	missingNamespacesPolicies = []choice[MissingNamespacesPolicy]{
		{"create", apis.MissingNamespacesCreate},
		{"do-not-create", apis.MissingNamespacesDoNotCreate},
	}
	foreignInstances = []choice[string]{
		{"block", "block"},
		{"ignore", "ignore"},
	}
)

// ParseAdoptionPolicy returns the policy for never, if-unowned or always, or an error that lists these words.
//
// For all policies, a word may be written in kebab case (if-unowned), in camel case (ifUnowned) or as in the API
// (IfUnowned). The empty text is an error.
func ParseAdoptionPolicy(text string) (AdoptionPolicy, error) {
	return parse(text, adoptionPolicies)
}

// ParseReconcilePolicy returns the policy for on-object-change, on-object-or-component-change or once, or an error that
// lists these words.
func ParseReconcilePolicy(text string) (ReconcilePolicy, error) {
	return parse(text, reconcilePolicies)
}

// ParseUpdatePolicy returns the policy for apply, apply-override, replace or recreate, or an error that lists these
// words. It accepts ssa-merge for apply, and ssa-override for apply-override. For default it returns the empty policy,
// which stands for that of the component.
func ParseUpdatePolicy(text string) (UpdatePolicy, error) {
	return parse(text, updatePolicies)
}

// ParseDeletePolicy returns the policy for delete, orphan, orphan-on-apply or orphan-on-delete, or an error that lists
// these words. For default it returns the empty policy, which stands for that of the component.
func ParseDeletePolicy(text string) (DeletePolicy, error) {
	return parse(text, deletePolicies)
}

// ParsePrunePolicy returns the policy for before, with or after, or an error that lists these words.
func ParsePrunePolicy(text string) (PrunePolicy, error) {
	return parse(text, prunePolicies)
}

// ParseMissingNamespacesPolicy returns the policy for create or do-not-create, or an error that lists these words.
func ParseMissingNamespacesPolicy(text string) (MissingNamespacesPolicy, error) {
	return parse(text, missingNamespacesPolicies)
}

func parse[P ~string](text string, choices []choice[P]) (P, error) {
	word := kebab(strings.TrimSpace(text))
	for _, c := range choices {
		if c.word == word {
			return c.value, nil
		}
	}
	var offers []string
	seen := map[P]bool{"": true}
	for _, c := range choices {
		if !seen[c.value] {
			seen[c.value] = true
			offers = append(offers, c.word)
		}
	}
	return "", fmt.Errorf("must be one of %s: %s", strings.Join(offers, ", "), quote(text))
}

// kebab turns IfUnowned and ifUnowned into if-unowned, and leaves if-unowned as it is.
func kebab(text string) string {
	var out strings.Builder
	runes := []rune(text)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && runes[i-1] != '-' {
			begins := !unicode.IsUpper(runes[i-1])
			endsAcronym := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if begins || endsAcronym {
				out.WriteByte('-')
			}
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// quote quotes text for an error, shortened: it may be as long as an annotation, and ends up in statuses and logs.
func quote(text string) string {
	const limit = 64
	if len(text) <= limit {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q...", strings.ToValidUTF8(text[:limit], ""))
}
