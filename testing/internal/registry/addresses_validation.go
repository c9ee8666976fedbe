package registry

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateAddress requires what the Kubernetes API reference requires, IPAddressSpec v1 networking.k8s.io. The object
// that has the address stays.
func validateAddress(a, old *networkingv1.IPAddress) field.ErrorList {
	at, ref := field.NewPath("spec", "parentRef"), a.Spec.ParentRef
	if old != nil && !equality.Semantic.DeepEqual(ref, old.Spec.ParentRef) {
		return field.ErrorList{immutable(at, ref)}
	}
	if ref == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := append(pathSegment(at.Child("resource"), ref.Resource), pathSegment(at.Child("name"), ref.Name)...)
	if ref.Group != "" {
		errs = append(errs, requiredName(at.Child("group"), ref.Group)...)
	}
	if ref.Namespace != "" {
		errs = append(errs, pathSegment(at.Child("namespace"), ref.Namespace)...)
	}
	return errs
}

// validateServiceRange requires what the Kubernetes API reference requires, ServiceCIDRSpec v1 networking.k8s.io. A
// second range may be added.
func validateServiceRange(c, old *networkingv1.ServiceCIDR) field.ErrorList {
	at, ranges := field.NewPath("spec", "cidrs"), c.Spec.CIDRs
	if old != nil {
		before := old.Spec.CIDRs
		grows := len(before) == 1 && len(ranges) == 2
		if len(ranges) != len(before) && !grows || !slices.Equal(ranges[:min(len(ranges), len(before))], before) {
			return field.ErrorList{immutable(at, ranges)}
		}
	}
	var errs field.ErrorList
	if len(ranges) == 0 {
		errs = append(errs, field.Required(at, "at least one CIDR required"))
	}
	for i, cidr := range ranges {
		errs = append(errs, validation.IsValidCIDR(at.Index(i), cidr)...)
	}
	if len(ranges) > 2 || len(ranges) == 2 && strings.Contains(ranges[0], ":") == strings.Contains(ranges[1], ":") {
		errs = append(errs, field.Invalid(at, ranges, "may specify no more than one IP for each IP family"))
	}
	return errs
}

// validateRuntimeClass requires what the Kubernetes API reference requires, RuntimeClass v1 node.k8s.io. The handler
// stays.
func validateRuntimeClass(c, old *nodev1.RuntimeClass) field.ErrorList {
	at := field.NewPath("handler")
	errs := requiredLabel(at, c.Handler)
	if old != nil && c.Handler != old.Handler {
		errs = append(errs, immutable(at, c.Handler))
	}
	if c.Overhead != nil {
		errs = append(errs, validateResources(&corev1.ResourceRequirements{Limits: c.Overhead.PodFixed}, nil,
			validateContainerResource, field.NewPath("overhead"))...)
	}
	if s := c.Scheduling; s != nil {
		path := field.NewPath("scheduling")
		errs = append(errs, validateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
		errs = append(errs, validateTolerations(s.Tolerations, path.Child("tolerations"))...)
		for i, t := range s.Tolerations {
			if slices.ContainsFunc(s.Tolerations[:i], func(o corev1.Toleration) bool {
				o.TolerationSeconds = t.TolerationSeconds
				return o == t
			}) {
				errs = append(errs, field.Duplicate(path.Child("tolerations").Index(i), t))
			}
		}
	}
	return errs
}
