package registry

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// validateDriver requires what the Kubernetes API reference requires, CSIDriverSpec v1 storage.k8s.io.
func validateDriver(d, old *storagev1.CSIDriver) field.ErrorList {
	at, spec := field.NewPath("spec"), &d.Spec
	errs := supported(at.Child("fsGroupPolicy"), ptr.Deref(spec.FSGroupPolicy, storagev1.FileFSGroupPolicy),
		storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy, storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy)
	audiences := sets.New[string]()
	for i, request := range spec.TokenRequests {
		path := at.Child("tokenRequests").Index(i)
		if audiences.Has(request.Audience) {
			errs = append(errs, field.Duplicate(path.Child("audience"), request.Audience))
		}
		audiences.Insert(request.Audience)
		errs = append(errs, between(path.Child("expirationSeconds"), request.ExpirationSeconds, 10*60, 1<<32)...)
	}
	for _, mode := range spec.VolumeLifecycleModes {
		errs = append(errs, supported(at.Child("volumeLifecycleModes"), mode, storagev1.VolumeLifecyclePersistent,
			storagev1.VolumeLifecycleEphemeral)...)
	}
	if period := spec.NodeAllocatableUpdatePeriodSeconds; period != nil && *period < 10 {
		errs = append(errs, field.Invalid(at.Child("nodeAllocatableUpdatePeriodSeconds"), *period,
			"must be greater than or equal to 10 seconds"))
	}
	if spec.ServiceAccountTokenInSecrets != nil && len(spec.TokenRequests) == 0 {
		errs = append(errs, field.Invalid(at.Child("serviceAccountTokenInSecrets"), *spec.ServiceAccountTokenInSecrets,
			"is set but no tokenRequests are specified"))
	}
	if old == nil {
		return errs
	}
	if !ptr.Equal(spec.AttachRequired, old.Spec.AttachRequired) {
		errs = append(errs, immutable(at.Child("attachedRequired"), spec.AttachRequired))
	}
	if !slices.Equal(spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes) {
		errs = append(errs, immutable(at.Child("volumeLifecycleModes"), spec.VolumeLifecycleModes))
	}
	return errs
}

// maxNodeID is the length of the name by which a driver knows a node.
const maxNodeID = 256

// validateCSINode requires what the Kubernetes API reference requires, CSINodeSpec v1 storage.k8s.io. A driver stays
// as it is, but for how many volumes it has.
func validateCSINode(n, old *storagev1.CSINode) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec", "drivers")
	names := sets.New[string]()
	for i := range n.Spec.Drivers {
		d, path := &n.Spec.Drivers[i], at.Index(i)
		errs = append(errs, validateDriverName(d.Name, path.Child("name"))...)
		if names.Has(d.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), d.Name))
		}
		names.Insert(d.Name)
		errs = append(errs, required(path.Child("nodeID"), d.NodeID)...)
		if len(d.NodeID) > maxNodeID {
			errs = append(errs, field.TooLong(path.Child("nodeID"), "", maxNodeID))
		}
		if d.Allocatable != nil {
			errs = append(errs, notNegative(path.Child("allocatable", "count"), d.Allocatable.Count)...)
		}
		for j, key := range d.TopologyKeys {
			errs = append(errs, invalid(path, key, validation.IsQualifiedName(key))...)
			if slices.Contains(d.TopologyKeys[:j], key) {
				errs = append(errs, field.Duplicate(path, key))
			}
		}
		if old == nil {
			continue
		}
		for _, before := range old.Spec.Drivers {
			before.Allocatable = d.Allocatable
			if before.Name == d.Name && !equality.Semantic.DeepEqual(*d, before) {
				errs = append(errs, immutable(at, d))
			}
		}
	}
	return errs
}

// validateCapacity requires what the Kubernetes API reference requires, CSIStorageCapacity v1 storage.k8s.io.
func validateCapacity(c, old *storagev1.CSIStorageCapacity) field.ErrorList {
	topology, class := field.NewPath("nodeTopology"), field.NewPath("storageClassName")
	errs := validateSelector(c.NodeTopology, topology)
	errs = append(errs, invalid(class, c.StorageClassName, subdomainName(c.StorageClassName, false))...)
	if old != nil && !equality.Semantic.DeepEqual(c.NodeTopology, old.NodeTopology) {
		errs = append(errs, immutable(topology, c.NodeTopology))
	}
	if old != nil && c.StorageClassName != old.StorageClassName {
		errs = append(errs, immutable(class, c.StorageClassName))
	}
	return append(errs, notNegativeAmount(field.NewPath("capacity"), ptr.Deref(c.Capacity, zeroAmount))...)
}

// validateAttributesClass requires what the Kubernetes API reference requires, VolumeAttributesClass v1
// storage.k8s.io. It never changes.
func validateAttributesClass(c, old *storagev1.VolumeAttributesClass) field.ErrorList {
	driver, parameters := field.NewPath("driverName"), field.NewPath("parameters")
	errs := append(validateProvisioner(c.DriverName, driver), validateParameters(c.Parameters, parameters)...)
	if len(c.Parameters) == 0 {
		errs = append(errs, field.Required(parameters, "must contain at least one key/value pair"))
	}
	if old != nil && c.DriverName != old.DriverName {
		errs = append(errs, field.Forbidden(driver, "updates to driverName are forbidden."))
	}
	if old != nil && !equality.Semantic.DeepEqual(c.Parameters, old.Parameters) {
		errs = append(errs, field.Forbidden(parameters, "updates to parameters are forbidden."))
	}
	return errs
}

// validateAttachment requires what the Kubernetes API reference requires, VolumeAttachmentSpec v1 storage.k8s.io. It
// never changes.
func validateAttachment(a, old *storagev1.VolumeAttachment) field.ErrorList {
	at, spec := field.NewPath("spec"), &a.Spec
	errs := validateDriverName(spec.Attacher, at.Child("attacher"))
	errs = append(errs, invalid(at.Child("nodeName"), spec.NodeName, subdomainName(spec.NodeName, false))...)
	source, volume := at.Child("source"), spec.Source.InlineVolumeSpec
	switch name := spec.Source.PersistentVolumeName; {
	case (volume == nil) == (name == nil):
		errs = append(errs, field.Required(source,
			"must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
	case name != nil:
		errs = append(errs, requiredName(source.Child("persistentVolumeName"), *name)...)
	default:
		errs = append(errs, validateInlineVolume(volume, source.Child("inlineVolumeSpec"))...)
	}
	if old != nil && !equality.Semantic.DeepEqual(spec, &old.Spec) {
		errs = append(errs, immutable(at, spec))
	}
	return errs
}

// validateInlineVolume requires a volume of a driver, without what a volume has that is an object.
func validateInlineVolume(v *corev1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	errs := validateVolumeSpec(v, "", at)
	if v.CSI == nil {
		errs = append(errs, field.Required(at.Child("csi"), "has to be specified in the context of inline volumes"))
	}
	policy := v.PersistentVolumeReclaimPolicy
	for name, is := range ordered(map[string]bool{
		"claimRef": v.ClaimRef != nil, "capacity": len(v.Capacity) > 0, "nodeAffinity": v.NodeAffinity != nil,
		"storageClassName":              v.StorageClassName != "",
		"persistentVolumeReclaimPolicy": policy != "" && policy != corev1.PersistentVolumeReclaimRetain,
		"volumeMode": ptr.Deref(v.VolumeMode,
			corev1.PersistentVolumeFilesystem) != corev1.PersistentVolumeFilesystem,
	}) {
		if is {
			errs = append(errs,
				field.Forbidden(at.Child(name), "may not be specified in the context of inline volumes"))
		}
	}
	return errs
}

// completeAttachment sets the defaults of a volume that is part of the attachment.
func completeAttachment(a, _ *storagev1.VolumeAttachment) {
	if v := a.Spec.Source.InlineVolumeSpec; v != nil {
		completeVolumeSpec(v)
	}
}
