package generator

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

// Further words for the values of policies.
var (
	updateAliases = map[string]UpdatePolicy{
		"ssa-merge": apis.UpdateApply, "ssa-override": apis.UpdateApplyOverride, "default": "",
	}
	deleteAliases = map[string]DeletePolicy{"default": ""}
)

// ParseAdoptionPolicy returns the policy for never, if-unowned or always, or an error that lists these words.
//
// For all policies, a word may be written in kebab case (if-unowned), in camel case (ifUnowned) or as in the API
// (IfUnowned). The empty text is an error.
func ParseAdoptionPolicy(text string) (AdoptionPolicy, error) {
	return parse(text, nil, apis.AdoptNever, apis.AdoptIfUnowned, apis.AdoptAlways)
}

// ParseReconcilePolicy returns the policy for on-object-change, on-object-or-component-change or once, or an error that
// lists these words.
func ParseReconcilePolicy(text string) (ReconcilePolicy, error) {
	return parse(text, nil,
		apis.ReconcileOnObjectChange, apis.ReconcileOnObjectOrComponentChange, apis.ReconcileOnce)
}

// ParseUpdatePolicy returns the policy for apply, apply-override, replace or recreate, or an error that lists these
// words. It accepts ssa-merge for apply, and ssa-override for apply-override. For default it returns the empty policy,
// which stands for the policy of the component.
func ParseUpdatePolicy(text string) (UpdatePolicy, error) {
	return parse(text, updateAliases,
		apis.UpdateApply, apis.UpdateApplyOverride, apis.UpdateReplace, apis.UpdateRecreate)
}

// ParseDeletePolicy returns the policy for delete, orphan, orphan-on-apply or orphan-on-delete, or an error that lists
// these words. For default it returns the empty policy, which stands for the component's.
func ParseDeletePolicy(text string) (DeletePolicy, error) {
	return parse(text, deleteAliases,
		apis.DeleteDelete, apis.DeleteOrphan, apis.DeleteOrphanOnApply, apis.DeleteOrphanOnDelete)
}

// ParsePrunePolicy returns the policy for before, with or after, or an error that lists these words.
func ParsePrunePolicy(text string) (PrunePolicy, error) {
	return parse(text, nil, apis.PruneBefore, apis.PruneWith, apis.PruneAfter)
}

// ParseMissingNamespacesPolicy returns the policy for create or do-not-create, or an error that lists these words.
func ParseMissingNamespacesPolicy(text string) (MissingNamespacesPolicy, error) {
	return parse(text, nil, apis.MissingNamespacesCreate, apis.MissingNamespacesDoNotCreate)
}

// parse returns the value whose name is text in one of its spellings, or the value of an alias.
func parse[P ~string](text string, aliases map[string]P, values ...P) (P, error) {
	word := kebab(strings.TrimSpace(text))
	if value, ok := aliases[word]; ok {
		return value, nil
	}
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = kebab(string(value))
		if words[i] == word {
			return value, nil
		}
	}
	return "", fmt.Errorf("must be one of %s: %s", strings.Join(words, ", "), quote(text))
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
