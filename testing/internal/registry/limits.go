package registry

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completeLimitRange sets the defaults of limits for containers, see LimitRangeItem v1 core in the Kubernetes API
// reference and "Limit Ranges" in the Kubernetes documentation: a maximum is the default limit, and the default limit,
// or else the minimum, is the default request.
// One without a name is called by its UID.
func completeLimitRange(l, _ *corev1.LimitRange) {
	if l.Name == "" {
		l.Name = string(l.UID)
	}
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		item.Default = withDefaults(item.Default, item.Max)
		item.DefaultRequest = withDefaults(withDefaults(item.DefaultRequest, item.Default), item.Min)
	}
}

// withDefaults adds what is missing in a list of resources. The list is never nil then.
func withDefaults(list, defaults corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	for name, quantity := range defaults {
		if _, ok := list[name]; !ok {
			list[name] = quantity.DeepCopy()
		}
	}
	return list
}

// validateLimitRange requires what the Kubernetes API reference requires, LimitRangeSpec v1 core: a type once, and of
// each resource a minimum, a default request, a default limit and a maximum that do not contradict one another.
func validateLimitRange(l, _ *corev1.LimitRange) field.ErrorList {
	var errs field.ErrorList
	types := sets.New[corev1.LimitType]()
	for i := range l.Spec.Limits {
		item, at := &l.Spec.Limits[i], field.NewPath("spec", "limits").Index(i)
		errs = append(errs, validateLimitType(item.Type, at.Child("type"))...)
		if types.Has(item.Type) {
			errs = append(errs, field.Duplicate(at.Child("type"), item.Type))
		}
		types.Insert(item.Type)
		errs = append(errs, validateLimits(item, at)...)
	}
	return errs
}

func validateLimitType(t corev1.LimitType, at *field.Path) field.ErrorList {
	errs := invalid(at, t, validation.IsQualifiedName(string(t)))
	if len(errs) == 0 && !strings.Contains(string(t), "/") && t != corev1.LimitTypePod &&
		t != corev1.LimitTypeContainer && t != corev1.LimitTypePersistentVolumeClaim {
		errs = append(errs, field.Invalid(at, t, "must be a standard limit type or fully qualified"))
	}
	return errs
}

func validateLimits(item *corev1.LimitRangeItem, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	checkName := validateResourceName
	switch item.Type {
	case corev1.LimitTypeContainer:
		checkName = validateContainerResource
	case corev1.LimitTypePod:
		checkName = validateContainerResource
		if len(item.Default)+len(item.DefaultRequest) > 0 {
			errs = append(errs, field.Forbidden(at.Child("default"), "may not be specified when `type` is 'Pod'"))
		}
	case corev1.LimitTypePersistentVolumeClaim:
		_, hasMin := item.Min[corev1.ResourceStorage]
		_, hasMax := item.Max[corev1.ResourceStorage]
		if !hasMin && !hasMax {
			errs = append(errs, field.Required(at.Child("limits"),
				"either minimum or maximum storage value is required, but neither was provided"))
		}
	}
	// Each list is at most as large as those after it.
	lists := []struct {
		name string
		list corev1.ResourceList
	}{
		{"min", item.Min}, {"defaultRequest", item.DefaultRequest}, {"default", item.Default}, {"max", item.Max},
		{"maxLimitRequestRatio", item.MaxLimitRequestRatio},
	}
	for i, l := range lists {
		for _, name := range slices.Sorted(maps.Keys(l.list)) {
			path := at.Child(l.name).Key(string(name))
			errs = append(errs, checkName(name, path)...)
			value := l.list[name]
			for _, larger := range lists[i:max(i, len(lists)-1)] {
				if limit, ok := larger.list[name]; ok && value.Cmp(limit) > 0 {
					errs = append(errs, field.Invalid(path, value.String(), "is greater than "+larger.name))
				}
			}
		}
	}
	for name, request := range ordered(item.DefaultRequest) {
		if limit, ok := item.Default[name]; ok && !isShared(name) && limit.Cmp(request) != 0 {
			errs = append(errs, field.Invalid(at.Child("defaultRequest").Key(string(name)), request.String(),
				"must be equal to default"))
		}
	}
	for name, ratio := range ordered(item.MaxLimitRequestRatio) {
		path := at.Child("maxLimitRequestRatio").Key(string(name))
		if ratio.Cmp(resource.MustParse("1")) < 0 {
			errs = append(errs, field.Invalid(path, ratio.String(), "is less than 1"))
		}
		low, hasLow := item.Min[name]
		high, hasHigh := item.Max[name]
		if hasLow && hasHigh &&
			ratio.AsApproximateFloat64() > high.AsApproximateFloat64()/low.AsApproximateFloat64() {
			errs = append(errs, field.Invalid(path, ratio.String(), "is greater than max/min"))
		}
	}
	return errs
}
