package registry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// completeClaim sets the defaults of the Kubernetes API reference, PersistentVolumeClaimSpec v1 core, and the first
// phase.
func completeClaim(c, old *corev1.PersistentVolumeClaim) {
	completeClaimSpec(&c.Spec)
	if source := c.Spec.DataSource; source != nil && c.Spec.DataSourceRef == nil {
		c.Spec.DataSourceRef = &corev1.TypedObjectReference{
			APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name,
		}
	}
	if old == nil {
		c.Status.Phase = corev1.ClaimPending
	}
}

// completeClaimSpec sets the volume mode.
func completeClaimSpec(spec *corev1.PersistentVolumeClaimSpec) {
	setDefault(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
}

// validateClaim lets a claim be bound, and get a class, once, see "Persistent Volumes" in the documentation.
func validateClaim(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateClaimSpec(&c.Spec, spec)
	if old == nil {
		return errs
	}
	changed := c.Spec.DeepCopy()
	if old.Spec.VolumeName == "" {
		changed.VolumeName = ""
	}
	if mayGetClass(c, old) {
		changed.StorageClassName = nil
	}
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

// mayGetClass reports whether a claim may get the class that it has now. It may if the beta annotation named it before.
func mayGetClass(c, old *corev1.PersistentVolumeClaim) bool {
	if old.Spec.StorageClassName != nil || c.Spec.StorageClassName == nil {
		return false
	}
	annotated, ok := old.Annotations[corev1.BetaStorageClassAnnotation]
	return !ok || annotated == *c.Spec.StorageClassName
}

// validateClaimSpec requires what the API reference requires.
func validateClaimSpec(spec *corev1.PersistentVolumeClaimSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), "at least 1 access mode is required"))
	}
	errs = append(errs, validateAccessModes(spec.AccessModes, at.Child("accessModes"))...)
	storage := at.Child("resources").Key(string(corev1.ResourceStorage))
	if quantity, ok := spec.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(storage, ""))
	} else if quantity.Sign() <= 0 {
		errs = append(errs, field.Invalid(storage, quantity.String(), "must be greater than zero"))
	}
	if class := spec.StorageClassName; class != nil && *class != "" {
		errs = append(errs, invalid(at.Child("storageClassName"), *class,
			subdomainName(*class, false))...)
	}
	return append(errs, validateVolumeMode(spec.VolumeMode, at.Child("volumeMode"))...)
}

// completePersistentVolume sets the defaults of the Kubernetes API reference, PersistentVolumeSpec v1 core, and the
// first phase, but for its time.
func completePersistentVolume(v, old *corev1.PersistentVolume) {
	setIfZero(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	setDefault(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	if v.Spec.ISCSI != nil {
		setIfZero(&v.Spec.ISCSI.ISCSIInterface, "default")
	}
	if v.Spec.HostPath != nil {
		setDefault(&v.Spec.HostPath.Type, corev1.HostPathUnset)
	}
	if old == nil {
		v.Status.Phase = corev1.VolumePending
	}
}

// validatePersistentVolume requires what the Kubernetes API reference requires, PersistentVolumeSpec v1 core. The
// source of a volume must not change, see "Persistent Volumes" in the documentation.
func validatePersistentVolume(v, old *corev1.PersistentVolume) field.ErrorList {
	at, spec := field.NewPath("spec"), &v.Spec
	var errs field.ErrorList
	if len(spec.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), ""))
	}
	errs = append(errs, validateAccessModes(spec.AccessModes, at.Child("accessModes"))...)
	if len(spec.Capacity) == 0 {
		errs = append(errs, field.Required(at.Child("capacity"), ""))
	}
	if _, ok := spec.Capacity[corev1.ResourceStorage]; !ok || len(spec.Capacity) > 1 {
		errs = append(errs, field.NotSupported(at.Child("capacity"), spec.Capacity,
			[]corev1.ResourceName{corev1.ResourceStorage}))
	}
	if spec.PersistentVolumeSource == (corev1.PersistentVolumeSource{}) {
		errs = append(errs, field.Required(at, "must specify a volume type"))
	}
	errs = append(errs, supported(at.Child("persistentVolumeReclaimPolicy"), spec.PersistentVolumeReclaimPolicy,
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle,
		corev1.PersistentVolumeReclaimRetain)...)
	errs = append(errs, validateVolumeMode(spec.VolumeMode, at.Child("volumeMode"))...)
	if old != nil && !equality.Semantic.DeepEqual(&spec.PersistentVolumeSource, &old.Spec.PersistentVolumeSource) {
		errs = append(errs, field.Forbidden(at.Child("persistentvolumesource"),
			"spec.persistentvolumesource is immutable after creation"))
	}
	return errs
}

func validateAccessModes(modes []corev1.PersistentVolumeAccessMode, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, mode := range modes {
		errs = append(errs, supported(at, mode, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany,
			corev1.ReadWriteOncePod)...)
	}
	return errs
}

func validateVolumeMode(mode *corev1.PersistentVolumeMode, at *field.Path) field.ErrorList {
	if mode == nil {
		return nil
	}
	return supported(at, *mode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
}
