package registry

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateQuota requires what the Kubernetes API reference requires, ResourceQuotaSpec v1 core. The scopes are
// immutable.
func validateQuota(q, old *corev1.ResourceQuota) field.ErrorList {
	at, spec := field.NewPath("spec"), &q.Spec
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(spec.Hard)) {
		path := at.Child("hard").Key(string(name))
		errs = append(errs, validateQuotaResource(name, path)...)
		errs = append(errs, validateResourceAmount(name, spec.Hard[name], path)...)
	}
	errs = append(errs, validateScopes(spec.Scopes, spec.Hard, at.Child("scopes"))...)
	if spec.ScopeSelector != nil {
		path := at.Child("scopeSelector", "matchExpressions")
		var scopes []corev1.ResourceQuotaScope
		for i := range spec.ScopeSelector.MatchExpressions {
			r := &spec.ScopeSelector.MatchExpressions[i]
			scopes = append(scopes, r.ScopeName)
			errs = append(errs, validateScopeRequirement(r, path)...)
		}
		errs = append(errs, validateScopes(scopes, spec.Hard, path)...)
	}
	if old != nil && !sets.New(spec.Scopes...).Equal(sets.New(old.Spec.Scopes...)) {
		errs = append(errs, immutable(at.Child("scopes"), spec.Scopes))
	}
	return errs
}

// scopedToPods are the scopes for pods, scoped the resources that a scope can be for, see "Quota scopes" in the
// documentation.
var (
	scopedToPods = []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceLimitsCPU,
		corev1.ResourceLimitsMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	}
	scoped = map[corev1.ResourceQuotaScope][]corev1.ResourceName{
		corev1.ResourceQuotaScopeTerminating:               scopedToPods,
		corev1.ResourceQuotaScopeNotTerminating:            scopedToPods,
		corev1.ResourceQuotaScopeNotBestEffort:             scopedToPods,
		corev1.ResourceQuotaScopePriorityClass:             scopedToPods,
		corev1.ResourceQuotaScopeCrossNamespacePodAffinity: scopedToPods,
		corev1.ResourceQuotaScopeBestEffort:                {corev1.ResourcePods},
		corev1.ResourceQuotaScopeVolumeAttributesClass: {
			corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage,
		},
	}
)

func validateScopes(scopes []corev1.ResourceQuotaScope, hard corev1.ResourceList, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, scope := range scopes {
		resources, ok := scoped[scope]
		if !ok {
			errs = append(errs, field.Invalid(at, scope, "unsupported scope"))
			continue
		}
		for name := range ordered(hard) {
			if isQuotaResource(name) && !slices.Contains(resources, name) {
				errs = append(errs, field.Invalid(at, scope, "unsupported scope applied to resource"))
			}
		}
	}
	all := sets.New(scopes...)
	if all.HasAll(corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort) ||
		all.HasAll(corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating) {
		errs = append(errs, field.Invalid(at, scopes, "conflicting scopes"))
	}
	return errs
}

func validateScopeRequirement(r *corev1.ScopedResourceSelectorRequirement, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	valued := r.ScopeName == corev1.ResourceQuotaScopePriorityClass ||
		r.ScopeName == corev1.ResourceQuotaScopeVolumeAttributesClass
	if _, ok := scoped[r.ScopeName]; ok && !valued && r.Operator != corev1.ScopeSelectorOpExists {
		errs = append(errs, field.Invalid(at.Child("operator"), r.Operator, "must be 'Exists' of this scope"))
	}
	switch r.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		if len(r.Values) == 0 {
			errs = append(errs, field.Required(at.Child("values"),
				"must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
		}
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			errs = append(errs, field.Invalid(at.Child("values"), r.Values,
				"must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"))
		}
	default:
		errs = append(errs, field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	return errs
}
