package registry

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateDisruptionBudget requires what the Kubernetes API reference requires, PodDisruptionBudgetSpec v1 policy.
func validateDisruptionBudget(b, _ *policyv1.PodDisruptionBudget) field.ErrorList {
	at, spec := field.NewPath("spec"), &b.Spec
	errs := validateAmount(spec.MinAvailable, at.Child("minAvailable"))
	errs = append(errs, validateAmount(spec.MaxUnavailable, at.Child("maxUnavailable"))...)
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(at, *spec, "minAvailable and maxUnavailable cannot be both set"))
	}
	return append(errs, metav1validation.ValidateLabelSelector(
		spec.Selector, metav1validation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
}
