package registry

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// completeClaim sets the defaults of the Kubernetes API reference, PersistentVolumeClaimSpec v1 core, and the first
// phase.
func completeClaim(c, old *corev1.PersistentVolumeClaim) {
	completeClaimSpec(&c.Spec)
	completeDataSource(c, old)
	if old == nil {
		c.Status.Phase = corev1.ClaimPending
	}
}

// completeDataSource has both fields for the source say the same. A source that is neither a claim nor a snapshot needs
// the new field, and is dropped without it. One in another namespace is dropped, because API servers do not allow that
// by default.
func completeDataSource(c, old *corev1.PersistentVolumeClaim) {
	spec := &c.Spec
	if ref := spec.DataSourceRef; ref != nil && ptr.Deref(ref.Namespace, "") != "" &&
		(old == nil || old.Spec.DataSourceRef == nil) {
		spec.DataSourceRef = nil
	}
	source := spec.DataSource
	if had := old != nil && (old.Spec.DataSource != nil || old.Spec.DataSourceRef != nil); source != nil &&
		!had && spec.DataSourceRef == nil {
		group := ptr.Deref(source.APIGroup, "")
		if !(group == "" && source.Kind == "PersistentVolumeClaim" ||
			group == "snapshot.storage.k8s.io" && source.Kind == "VolumeSnapshot") {
			spec.DataSource, source = nil, nil
		}
	}
	switch ref := spec.DataSourceRef; {
	case source != nil && ref == nil:
		spec.DataSourceRef = &corev1.TypedObjectReference{
			APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name,
		}
	case source == nil && ref != nil && ptr.Deref(ref.Namespace, "") == "":
		spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
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
	} else if class := c.Annotations[betaClass]; class != old.Annotations[betaClass] {
		errs = append(errs, immutable(metadata.Child("annotations").Key(betaClass), class))
	}
	storage, before := c.Spec.Resources.Requests.Storage(), old.Spec.Resources.Requests.Storage()
	if old.Status.Phase == corev1.ClaimBound {
		if changed.Resources.Requests != nil {
			changed.Resources.Requests[corev1.ResourceStorage] = *before
		}
		changed.VolumeAttributesClassName = old.Spec.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(changed, &old.Spec) {
		errs = append(errs, field.Forbidden(spec, "spec is immutable after creation except "+
			"resources.requests and volumeAttributesClassName for bound claims"))
	}
	if storage.Cmp(*before) < 0 && storage.Cmp(*old.Status.Capacity.Storage()) <= 0 {
		errs = append(errs, field.Forbidden(spec.Child("resources", "requests", "storage"),
			"field can not be less than status.capacity"))
	}
	if old.Status.CurrentVolumeAttributesClassName != nil && ptr.Deref(c.Spec.VolumeAttributesClassName, "") == "" &&
		!ptr.Equal(c.Spec.VolumeAttributesClassName, old.Spec.VolumeAttributesClassName) {
		errs = append(errs, field.Forbidden(spec.Child("volumeAttributesClassName"),
			"update to nothing is forbidden when status.currentVolumeAttributesClassName is not nil"))
	}
	return errs
}

const betaClass = corev1.BetaStorageClassAnnotation

// mayGetClass reports whether a claim may get the class that it has now. It may if the beta annotation named it before.
func mayGetClass(c, old *corev1.PersistentVolumeClaim) bool {
	if old.Spec.StorageClassName != nil || c.Spec.StorageClassName == nil {
		return false
	}
	annotated, ok := old.Annotations[betaClass]
	return !ok || annotated == *c.Spec.StorageClassName
}

// validateClaimSpec requires what the API reference requires.
func validateClaimSpec(spec *corev1.PersistentVolumeClaimSpec, at *field.Path) field.ErrorList {
	errs := validateAccessModes(spec.AccessModes, at.Child("accessModes"))
	if len(spec.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), "at least 1 access mode is required"))
	}
	errs = append(errs, validateSelector(spec.Selector, at.Child("selector"))...)
	storage := at.Child("resources").Key(string(corev1.ResourceStorage))
	if quantity, ok := spec.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(storage, ""))
	} else if quantity.Sign() <= 0 {
		errs = append(errs, field.Invalid(storage, quantity.String(), "must be greater than zero"))
	}
	for name, class := range ordered(map[string]*string{
		"storageClassName": spec.StorageClassName, "volumeAttributesClassName": spec.VolumeAttributesClassName,
	}) {
		if class != nil && *class != "" {
			errs = append(errs, invalid(at.Child(name), *class, subdomainName(*class, false))...)
		}
	}
	if s := spec.DataSource; s != nil {
		errs = append(errs, validateDataSource(s.APIGroup, s.Kind, s.Name, at.Child("dataSource"))...)
	}
	if s := spec.DataSourceRef; s != nil {
		errs = append(errs, validateDataSource(s.APIGroup, s.Kind, s.Name, at.Child("dataSourceRef"))...)
	}
	if ref := spec.DataSourceRef; ref != nil && ptr.Deref(ref.Namespace, "") != "" {
		errs = append(errs, invalid(at.Child("dataSourceRef", "namespace"), *ref.Namespace,
			labelName(*ref.Namespace, false))...)
	}
	if a, b := spec.DataSource, spec.DataSourceRef; a != nil && b != nil &&
		(ptr.Deref(b.Namespace, "") != "" || a.Kind != b.Kind || a.Name != b.Name ||
			!ptr.Equal(a.APIGroup, b.APIGroup)) {
		errs = append(errs, field.Invalid(at, a, "must match dataSourceRef"))
	}
	return append(errs, validateVolumeMode(spec.VolumeMode, at.Child("volumeMode"))...)
}

func validateDataSource(group *string, kind, name string, at *field.Path) field.ErrorList {
	errs := needs("kind", kind, "name", name)(at)
	if ptr.Deref(group, "") != "" {
		return append(errs, invalid(at.Child("apiGroup"), *group, subdomainName(*group, false))...)
	}
	if kind != "PersistentVolumeClaim" {
		errs = append(errs,
			field.Invalid(at, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
	}
	return errs
}

// completePersistentVolume sets the defaults of the Kubernetes API reference, PersistentVolumeSpec v1 core, and the
// first phase, but for its time.
func completePersistentVolume(v, old *corev1.PersistentVolume) {
	completeVolumeSpec(&v.Spec)
	if old == nil {
		v.Status.Phase = corev1.VolumePending
	}
}

func completeVolumeSpec(spec *corev1.PersistentVolumeSpec) {
	setIfZero(&spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	setDefault(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	if spec.ISCSI != nil {
		setIfZero(&spec.ISCSI.ISCSIInterface, "default")
	}
	if spec.HostPath != nil {
		setDefault(&spec.HostPath.Type, corev1.HostPathUnset)
	}
	if spec.AzureDisk != nil {
		completeVolume(&corev1.VolumeSource{AzureDisk: spec.AzureDisk})
	}
	if spec.RBD != nil {
		setIfZero(&spec.RBD.RBDPool, "rbd")
		setIfZero(&spec.RBD.RadosUser, "admin")
		setIfZero(&spec.RBD.Keyring, "/etc/ceph/keyring")
	}
	if spec.ScaleIO != nil {
		setIfZero(&spec.ScaleIO.StorageMode, "ThinProvisioned")
		setIfZero(&spec.ScaleIO.FSType, "xfs")
	}
}

func validateAccessModes(modes []corev1.PersistentVolumeAccessMode, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, mode := range modes {
		errs = append(errs, supported(at, mode, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany,
			corev1.ReadWriteOncePod)...)
	}
	if slices.Contains(modes, corev1.ReadWriteOncePod) &&
		slices.ContainsFunc(modes,
			func(m corev1.PersistentVolumeAccessMode) bool { return m != corev1.ReadWriteOncePod }) {
		errs = append(errs, field.Forbidden(at, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

func validateVolumeMode(mode *corev1.PersistentVolumeMode, at *field.Path) field.ErrorList {
	if mode == nil {
		return nil
	}
	return supported(at, *mode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
}
