package registry

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completeNamespace sets the label with the name, see "Automatic labelling" in the documentation of Namespace, and the
// finalizer and the first phase, see "Namespace Design" there. An update does not change the finalizers, which have a
// subresource, and does not label a namespace that was given without the label.
func completeNamespace(n, old *corev1.Namespace) {
	if old == nil || old.Labels[corev1.LabelMetadataName] != "" {
		n.Labels = with(n.Labels, corev1.LabelMetadataName, n.Name)
	}
	if old != nil {
		n.Spec.Finalizers = old.Spec.Finalizers
		return
	}
	n.Status.Phase = corev1.NamespaceActive
	if !slices.Contains(n.Spec.Finalizers, corev1.FinalizerKubernetes) {
		n.Spec.Finalizers = append(n.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
}

// validateNamespace requires names of finalizers.
func validateNamespace(n, _ *corev1.Namespace) field.ErrorList {
	at := field.NewPath("spec", "finalizers")
	var errs field.ErrorList
	for _, name := range n.Spec.Finalizers {
		errs = append(errs, apivalidation.ValidateFinalizerName(string(name), at)...)
		errs = append(errs, validateFinalizer(string(name), at)...)
	}
	return errs
}
