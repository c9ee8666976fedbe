package registry

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completeNode has both fields for the address ranges of pods say the same, and drops what nodes do not have by
// default, or any more.
func completeNode(n, old *corev1.Node) {
	spec := &n.Spec
	if cidr := spec.PodCIDR; cidr != "" && (len(spec.PodCIDRs) == 0 || spec.PodCIDRs[0] != cidr) {
		spec.PodCIDRs = []string{cidr}
	} else if len(spec.PodCIDRs) > 0 {
		spec.PodCIDR = spec.PodCIDRs[0]
	}
	//lint:ignore SA1019 clients still send it
	if old == nil || old.Spec.ConfigSource == nil {
		spec.ConfigSource = nil //lint:ignore SA1019 see above
	}
	if old == nil || old.Spec.PodPreemptionPolicy == nil {
		spec.PodPreemptionPolicy = nil
	}
}

// validateNode requires what the Kubernetes API reference requires, NodeSpec v1 core. What a provider gave a node
// stays.
func validateNode(n, old *corev1.Node) field.ErrorList {
	at, spec := field.NewPath("spec"), &n.Spec
	errs := validateTaints(spec.Taints, metadata.Child("taints"))
	cidrs, path := spec.PodCIDRs, at.Child("podCIDRs")
	for i, cidr := range cidrs {
		errs = append(errs, validation.IsValidCIDRForLegacyField(path.Index(i), cidr, true, nil)...)
	}
	if len(cidrs) > 2 || len(cidrs) == 2 && strings.Contains(cidrs[0], ":") == strings.Contains(cidrs[1], ":") {
		errs = append(errs, field.Invalid(path, cidrs, "may specify no more than one CIDR for each IP family"))
	}
	if old == nil {
		return errs
	}
	if before := old.Spec.PodCIDRs; len(before) > 0 && !slices.Equal(before, spec.PodCIDRs) {
		errs = append(errs, field.Forbidden(at.Child("podCIDRs"),
			"node updates may not change podCIDR except from \"\" to valid"))
	}
	if id := old.Spec.ProviderID; id != "" && id != spec.ProviderID {
		errs = append(errs, field.Invalid(at.Child("providerID"), spec.ProviderID, "field cannot be modified once set"))
	}
	if spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID {
		errs = append(errs, field.Forbidden(at.Child("externalID"), "may not be updated"))
	}
	return errs
}

func validateTaints(taints []corev1.Taint, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, t := range taints {
		path := at.Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(t.Key, path.Child("key"))...)
		errs = append(errs, invalid(path.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
		errs = append(errs, oneOf(path.Child("effect"), t.Effect, corev1.TaintEffectNoSchedule,
			corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
		if slices.ContainsFunc(taints[:i],
			func(o corev1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
			errs = append(errs, field.Duplicate(path, t))
		}
	}
	return errs
}
