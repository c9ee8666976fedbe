package registry

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completePriorityClass sets the defaults of the Kubernetes API reference, PriorityClass v1 scheduling.k8s.io.
func completePriorityClass(c, _ *schedulingv1.PriorityClass) {
	setDefault(&c.PreemptionPolicy, corev1.PreemptLowerPriority)
}

// maxPriority is that of the classes that users define, see "PriorityClass" in the documentation.
const maxPriority = 1_000_000_000

func validatePriorityClass(c, old *schedulingv1.PriorityClass) field.ErrorList {
	at := field.NewPath("value")
	var errs field.ErrorList
	if c.Value > maxPriority && !strings.HasPrefix(c.Name, "system-") {
		errs = append(errs, field.Forbidden(at, "maximum allowed value of a user defined priority is 1000000000"))
	}
	if old == nil {
		return errs
	}
	if c.Value != old.Value {
		errs = append(errs, field.Forbidden(at, "may not be changed in an update"))
	}
	if !equality.Semantic.DeepEqual(c.PreemptionPolicy, old.PreemptionPolicy) {
		errs = append(errs, immutable(field.NewPath("preemptionPolicy"), c.PreemptionPolicy))
	}
	return errs
}

// validateIngressClass requires what the Kubernetes API reference requires, IngressClassSpec v1 networking.k8s.io.
func validateIngressClass(c, old *networkingv1.IngressClass) field.ErrorList {
	at := field.NewPath("spec", "controller")
	if c.Spec.Controller == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validation.IsDomainPrefixedPath(at, c.Spec.Controller)
	if old != nil && c.Spec.Controller != old.Spec.Controller {
		errs = append(errs, immutable(at, c.Spec.Controller))
	}
	return errs
}

// completeDriver sets the defaults of the Kubernetes API reference, CSIDriver v1 storage.k8s.io.
func completeDriver(d, _ *storagev1.CSIDriver) {
	setDefault(&d.Spec.AttachRequired, true)
	setDefault(&d.Spec.PodInfoOnMount, false)
	setDefault(&d.Spec.StorageCapacity, false)
	setDefault(&d.Spec.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	setDefault(&d.Spec.RequiresRepublish, false)
	setDefault(&d.Spec.SELinuxMount, false)
	if len(d.Spec.VolumeLifecycleModes) == 0 {
		d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
}

// completeStorageClass sets the defaults of the Kubernetes API reference, StorageClass v1 storage.k8s.io.
func completeStorageClass(c, _ *storagev1.StorageClass) {
	setDefault(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	setDefault(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
}

func validateStorageClass(c, old *storagev1.StorageClass) field.ErrorList {
	var errs field.ErrorList
	if c.Provisioner == "" {
		errs = append(errs, field.Required(field.NewPath("provisioner"), ""))
	}
	if policy := c.ReclaimPolicy; policy != nil {
		errs = append(errs, supported(field.NewPath("reclaimPolicy"), *policy, corev1.PersistentVolumeReclaimDelete,
			corev1.PersistentVolumeReclaimRetain)...)
	}
	if mode := c.VolumeBindingMode; mode != nil {
		errs = append(errs, supported(field.NewPath("volumeBindingMode"), *mode, storagev1.VolumeBindingImmediate,
			storagev1.VolumeBindingWaitForFirstConsumer)...)
	}
	if old == nil {
		return errs
	}
	for _, f := range []struct {
		name     string
		now, was any
	}{
		{"parameters", c.Parameters, old.Parameters},
		{"provisioner", c.Provisioner, old.Provisioner},
		{"reclaimPolicy", c.ReclaimPolicy, old.ReclaimPolicy},
		{"volumeBindingMode", c.VolumeBindingMode, old.VolumeBindingMode},
	} {
		if !equality.Semantic.DeepEqual(f.now, f.was) {
			errs = append(errs, immutable(field.NewPath(f.name), f.now))
		}
	}
	return errs
}
