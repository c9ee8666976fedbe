package registry

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The names of resources without a domain, see "Resource Quotas" and "Resource Management for Pods and Containers" in
// the Kubernetes documentation.
var (
	containerResources = []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
	}
	countedResources = []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
		corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
		corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
	}
	quotaResources = slices.Concat(containerResources, countedResources, []corev1.ResourceName{
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsStorage,
		corev1.ResourceRequestsEphemeralStorage, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
		corev1.ResourceLimitsEphemeralStorage,
	})
)

var zeroAmount resource.Quantity

const hugePages = corev1.ResourceHugePagesPrefix

func isHugePages(name corev1.ResourceName) bool { return strings.HasPrefix(string(name), hugePages) }

func isQuotaResource(name corev1.ResourceName) bool {
	return slices.Contains(quotaResources, name) || isHugePages(name) ||
		strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix)
}

// isExtended reports whether a resource is one of a vendor.
func isExtended(name corev1.ResourceName) bool {
	return !isNative(name) && !strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

func isNative(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") ||
		strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// isShared reports whether containers may request less of a resource than their limit.
func isShared(name corev1.ResourceName) bool { return isNative(name) && !isHugePages(name) }

func validateResourceName(name corev1.ResourceName, at *field.Path) field.ErrorList {
	errs := invalid(at, name, validation.IsQualifiedName(string(name)))
	if len(errs) == 0 && !strings.Contains(string(name), "/") && !isQuotaResource(name) &&
		name != corev1.ResourceStorage {
		errs = append(errs, field.Invalid(at, name, "must be a standard resource type or fully qualified"))
	}
	return errs
}

func validateQuotaResource(name corev1.ResourceName, at *field.Path) field.ErrorList {
	errs := validateResourceName(name, at)
	if !strings.Contains(string(name), "/") && !isQuotaResource(name) {
		errs = append(errs, field.Invalid(at, name, "must be a standard resource for quota"))
	}
	return errs
}

func validateContainerResource(name corev1.ResourceName, at *field.Path) field.ErrorList {
	if slices.Contains(containerResources, name) {
		return nil
	}
	errs := validateResourceName(name, at)
	switch {
	case !strings.Contains(string(name), "/") && !isHugePages(name):
		errs = append(errs, field.Invalid(at, name, "must be a standard resource for containers"))
	case !isNative(name) && !isExtended(name):
		errs = append(errs, field.Invalid(at, name, "doesn't follow extended resource name standard"))
	}
	return errs
}

// validateResourceAmount requires an amount that is not negative, and a whole one of what is counted.
func validateResourceAmount(name corev1.ResourceName, amount resource.Quantity, at *field.Path) field.ErrorList {
	errs := notNegativeAmount(at, amount)
	if (slices.Contains(countedResources, name) || isExtended(name)) && amount.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(at, amount.String(), "must be an integer"))
	}
	return errs
}

func notNegativeAmount(at *field.Path, amount resource.Quantity) field.ErrorList {
	if amount.Sign() >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, amount.String(), "must be greater than or equal to 0")}
}
