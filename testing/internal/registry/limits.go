package registry

import corev1 "k8s.io/api/core/v1"

// completeLimitRange sets the defaults of limits for containers, see LimitRangeItem v1 core in the Kubernetes API
// reference and "Limit Ranges" in the Kubernetes documentation: a maximum is the default limit, and the default limit,
// or else the minimum, is the default request.
func completeLimitRange(l, _ *corev1.LimitRange) {
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
