package registry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completeClaim sets the defaults of the Kubernetes API reference, PersistentVolumeClaimSpec v1 core, and the first
// phase.
func completeClaim(c, old *corev1.PersistentVolumeClaim) {
	completeClaimSpec(&c.Spec)
	if old == nil {
		c.Status.Phase = corev1.ClaimPending
	}
}

// completeClaimSpec sets the volume mode.
func completeClaimSpec(spec *corev1.PersistentVolumeClaimSpec) {
	setDefault(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
}

func validateClaim(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateClaimSpec(&c.Spec, spec)
	if old == nil {
		return errs
	}
	changed := c.Spec.DeepCopy()
	storage, before := c.Spec.Resources.Requests.Storage(), old.Spec.Resources.Requests.Storage()
	if old.Status.Phase == corev1.ClaimBound {
		changed.Resources.Requests = old.Spec.Resources.Requests
		changed.VolumeAttributesClassName = old.Spec.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(changed, &old.Spec) {
		return append(errs, field.Forbidden(spec, "spec is immutable after creation except "+
			"resources.requests and volumeAttributesClassName for bound claims"))
	}
	if storage.Cmp(*before) < 0 {
		errs = append(errs, field.Forbidden(spec.Child("resources", "requests", "storage"),
			"field can not be less than status.capacity"))
	}
	return errs
}

// validateClaimSpec requires what the API reference requires.
func validateClaimSpec(spec *corev1.PersistentVolumeClaimSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), "at least 1 access mode is required"))
	}
	for _, mode := range spec.AccessModes {
		errs = append(errs, oneOf(at.Child("accessModes"), mode, corev1.ReadWriteOnce, corev1.ReadOnlyMany,
			corev1.ReadWriteMany, corev1.ReadWriteOncePod)...)
	}
	storage := at.Child("resources").Key(string(corev1.ResourceStorage))
	if quantity, ok := spec.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(storage, ""))
	} else if quantity.Sign() <= 0 {
		errs = append(errs, field.Invalid(storage, quantity.String(), "must be greater than zero"))
	}
	if class := spec.StorageClassName; class != nil && *class != "" {
		errs = append(errs, invalid(at.Child("storageClassName"), *class,
			apivalidation.NameIsDNSSubdomain(*class, false))...)
	}
	if mode := spec.VolumeMode; mode != nil {
		errs = append(errs, oneOf(at.Child("volumeMode"), *mode, corev1.PersistentVolumeBlock,
			corev1.PersistentVolumeFilesystem)...)
	}
	return errs
}

// completePersistentVolume sets the defaults of the Kubernetes API reference, PersistentVolumeSpec v1 core, and the
// first phase, but for its time.
func completePersistentVolume(v, old *corev1.PersistentVolume) {
	setIfZero(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	setDefault(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	if v.Spec.HostPath != nil {
		setDefault(&v.Spec.HostPath.Type, corev1.HostPathUnset)
	}
	if old == nil {
		v.Status.Phase = corev1.VolumePending
	}
}
