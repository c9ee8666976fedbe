package registry

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateDisruptionBudget requires what the Kubernetes API reference requires, PodDisruptionBudgetSpec v1 policy.
func validateDisruptionBudget(b, _ *policyv1.PodDisruptionBudget) field.ErrorList {
	at, spec := field.NewPath("spec"), &b.Spec
	var errs field.ErrorList
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(at, "", "minAvailable and maxUnavailable cannot be both set"))
	}
	errs = append(errs, validateShare(spec.MinAvailable, at.Child("minAvailable"))...)
	errs = append(errs, validateShare(spec.MaxUnavailable, at.Child("maxUnavailable"))...)
	errs = append(errs, validateSelector(spec.Selector, at.Child("selector"))...)
	if policy := spec.UnhealthyPodEvictionPolicy; policy != nil {
		errs = append(errs, supported(at.Child("unhealthyPodEvictionPolicy"), *policy, policyv1.IfHealthyBudget,
			policyv1.AlwaysAllow)...)
	}
	return errs
}

// validateShare requires a number that is not negative, or a percentage of at most 100.
func validateShare(share *intstr.IntOrString, at *field.Path) field.ErrorList {
	errs := validateAmount(share, at)
	if len(errs) > 0 || share == nil {
		return errs
	}
	if percent, err := intstr.GetScaledValueFromIntOrPercent(share, 100, false); err == nil &&
		share.Type == intstr.String && percent > 100 {
		return field.ErrorList{field.Invalid(at, share.StrVal, "must not be greater than 100%")}
	}
	return nil
}
