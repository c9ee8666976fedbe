package registry

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateResources requires names and amounts of resources, requests within the limits, and as large as those of what
// is not shared. Huge pages need another resource. Claims are those of the pod.
func validateResources(
	resources *corev1.ResourceRequirements, claims sets.Set[string],
	checkName func(corev1.ResourceName, *field.Path) field.ErrorList, at *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	for name, request := range ordered(resources.Requests) {
		limit, ok := resources.Limits[name]
		switch {
		case !ok && !isShared(name):
			errs = append(errs,
				field.Required(at.Child("limits"), "Limit must be set for non overcommitable resources"))
		case ok && !isShared(name) && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(at.Child("requests"), request.String(),
				"must be equal to "+string(name)+" limit of "+limit.String()))
		case ok && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(at.Child("requests"), request.String(),
				"must be less than or equal to "+string(name)+" limit of "+limit.String()))
		}
	}
	for name, limit := range ordered(resources.Limits) {
		errs = append(errs, validateAmountOf(name, limit, checkName, at.Child("limits").Key(string(name)))...)
	}
	for name, request := range ordered(resources.Requests) {
		errs = append(errs, validateAmountOf(name, request, checkName, at.Child("requests").Key(string(name)))...)
	}
	names := slices.Concat(slices.Collect(maps.Keys(resources.Limits)), slices.Collect(maps.Keys(resources.Requests)))
	if slices.ContainsFunc(names, isHugePages) && !slices.Contains(names, corev1.ResourceCPU) &&
		!slices.Contains(names, corev1.ResourceMemory) {
		errs = append(errs, field.Forbidden(at, "HugePages require cpu or memory"))
	}
	return append(errs, validateClaimNames(resources.Claims, claims, at.Child("claims"))...)
}

func validateAmountOf(
	name corev1.ResourceName, amount resource.Quantity,
	checkName func(corev1.ResourceName, *field.Path) field.ErrorList, at *field.Path,
) field.ErrorList {
	errs := append(checkName(name, at), validateResourceAmount(name, amount, at)...)
	if !isHugePages(name) {
		return errs
	}
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), hugePages))
	if err != nil || size.Sign() <= 0 || size.MilliValue()%1000 != 0 || amount.Value()%size.Value() != 0 {
		errs = append(errs, field.Invalid(at, amount.String(), "must be a multiple of the page size"))
	}
	return errs
}

// validateClaimNames requires claims of the pod, each once, whole or by requests.
func validateClaimNames(used []corev1.ResourceClaim, claims sets.Set[string], at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, claim := range used {
		path := at.Index(i)
		errs = append(errs, required(path, claim.Name)...)
		if claim.Name == "" {
			continue
		}
		if claim.Request != "" {
			errs = append(errs, invalid(path.Child("request"), claim.Request, labelName(claim.Request, false))...)
		}
		if slices.ContainsFunc(used[:i], func(other corev1.ResourceClaim) bool {
			return other.Name == claim.Name &&
				(other.Request == claim.Request || other.Request == "" || claim.Request == "")
		}) {
			errs = append(errs, field.Duplicate(path, claim.Name))
		}
		if !claims.Has(claim.Name) {
			errs = append(errs, field.NotFound(path, claim.Name))
		}
	}
	return errs
}
