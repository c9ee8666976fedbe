package registry

import (
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// AcceptNames sets the status that controllers of an API server set some milliseconds after a definition was written:
// which names are accepted, and whether it is established. A name that another definition of the group has is not
// accepted. A definition is established once all its names are accepted, and stays so. See
// CustomResourceDefinitionCondition v1 apiextensions.k8s.io in the Kubernetes API reference.
func AcceptNames(
	definition *apiextensionsv1.CustomResourceDefinition, others []*apiextensionsv1.CustomResourceDefinition,
	now metav1.Time,
) {
	requested, accepted := definition.Spec.Names, &definition.Status.AcceptedNames
	if equality.Semantic.DeepEqual(requested, *accepted) {
		return
	}
	names := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue,
		Reason: "NoConflicts", Message: "no conflicts found",
	}
	claimed := claimsOf(definition.Spec.Group, others)
	check := func(reason string, err error, accept func()) {
		if err == nil {
			accept()
			return
		}
		names.Status, names.Reason, names.Message = apiextensionsv1.ConditionFalse, reason, err.Error()
	}
	check("PluralConflict", claimed.resources.refuse(requested.Plural, accepted.Plural),
		func() { accepted.Plural = requested.Plural })
	check("SingularConflict", claimed.resources.refuse(requested.Singular, accepted.Singular),
		func() { accepted.Singular = requested.Singular })
	check("ShortNamesConflict", claimed.resources.refuseAll(requested.ShortNames, accepted.ShortNames),
		func() { accepted.ShortNames = slices.Clone(requested.ShortNames) })
	check("KindConflict", claimed.kinds.refuse(requested.Kind, accepted.Kind),
		func() { accepted.Kind = requested.Kind })
	check("ListKindConflict", claimed.kinds.refuse(requested.ListKind, accepted.ListKind),
		func() { accepted.ListKind = requested.ListKind })
	accepted.Categories = slices.Clone(requested.Categories)
	setCondition(definition, names, now)
	establish(definition, names.Status, now)
}

// establish sets the condition Established.
func establish(
	definition *apiextensionsv1.CustomResourceDefinition, namesAccepted apiextensionsv1.ConditionStatus,
	now metav1.Time,
) {
	established := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: namesAccepted,
		Reason: "InitialNamesAccepted", Message: "the initial names have been accepted",
	}
	if namesAccepted == apiextensionsv1.ConditionFalse {
		established.Reason, established.Message = "NotAccepted", "not all names are accepted"
	}
	before := apihelpers.FindCRDCondition(definition, apiextensionsv1.Established)
	if before == nil || before.Status != apiextensionsv1.ConditionTrue {
		setCondition(definition, established, now)
	}
}

// Established reports whether a definition is served. One without the condition is: somebody gave it without a status.
func Established(definition *apiextensionsv1.CustomResourceDefinition) bool {
	established := apihelpers.FindCRDCondition(definition, apiextensionsv1.Established)
	return established == nil || established.Status != apiextensionsv1.ConditionFalse
}

// NamesRefused reports whether names of a definition are not accepted.
func NamesRefused(definition *apiextensionsv1.CustomResourceDefinition) bool {
	names := apihelpers.FindCRDCondition(definition, apiextensionsv1.NamesAccepted)
	return names != nil && names.Status == apiextensionsv1.ConditionFalse
}

// setCondition sets a condition. Its time is the one of the last change of its status. (That of apihelpers reads the
// clock.)
func setCondition(
	definition *apiextensionsv1.CustomResourceDefinition, condition apiextensionsv1.CustomResourceDefinitionCondition,
	now metav1.Time,
) {
	condition.LastTransitionTime = now
	before := apihelpers.FindCRDCondition(definition, condition.Type)
	if before == nil {
		definition.Status.Conditions = append(definition.Status.Conditions, condition)
		return
	}
	if before.Status == condition.Status {
		condition.LastTransitionTime = before.LastTransitionTime
	}
	*before = condition
}

// claimedNames are names that others have.
type claimedNames map[string]bool

// claims are the names that definitions have: those of resources, and those of kinds.
type claims struct{ resources, kinds claimedNames }

func claimsOf(group string, definitions []*apiextensionsv1.CustomResourceDefinition) claims {
	claimed := claims{claimedNames{}, claimedNames{}}
	for _, definition := range definitions {
		if definition.Spec.Group != group {
			continue
		}
		names := definition.Status.AcceptedNames
		if apihelpers.FindCRDCondition(definition, apiextensionsv1.NamesAccepted) == nil {
			names = definition.Spec.Names // Somebody gave it without a status.
		}
		for _, name := range append([]string{names.Plural, names.Singular}, names.ShortNames...) {
			claimed.resources[name] = true
		}
		claimed.kinds[names.Kind], claimed.kinds[names.ListKind] = true, true
	}
	return claimed
}

// refuse returns an error if somebody else has the requested name. The accepted one stays the definition's own.
func (c claimedNames) refuse(requested, accepted string) error {
	if requested == accepted || !c[requested] {
		return nil
	}
	return fmt.Errorf("%q is already in use", requested)
}

func (c claimedNames) refuseAll(requested, accepted []string) error {
	var errs []error
	for _, name := range requested {
		if !slices.Contains(accepted, name) {
			errs = append(errs, c.refuse(name, ""))
		}
	}
	return utilerrors.NewAggregate(errs)
}
