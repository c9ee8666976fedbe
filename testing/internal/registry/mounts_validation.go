package registry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// validateMounts requires volumes of the pod, each at a path of its own. Devices are claims.
func (p podRules) validateMounts(c *corev1.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	paths, names := sets.New[string](), sets.New[string]()
	for i := range c.VolumeMounts {
		mount, path := &c.VolumeMounts[i], at.Child("volumeMounts").Index(i)
		errs = append(errs, needs("name", mount.Name, "mountPath", mount.MountPath)(path)...)
		if p.volumes[mount.Name] == nil {
			errs = append(errs, field.NotFound(path.Child("name"), mount.Name))
		}
		if mount.MountPath != "" && paths.Has(mount.MountPath) {
			errs = append(errs, field.Invalid(path.Child("mountPath"), mount.MountPath, "must be unique"))
		}
		paths.Insert(mount.MountPath)
		names.Insert(mount.Name)
		errs = append(errs, descending(mount.SubPath, path.Child("subPath"))...)
		errs = append(errs, descending(mount.SubPathExpr, path.Child("subPathExpr"))...)
		if mount.SubPath != "" && mount.SubPathExpr != "" {
			errs = append(errs, field.Invalid(path.Child("subPathExpr"), mount.SubPathExpr,
				"subPathExpr and subPath are mutually exclusive"))
		}
		errs = append(errs, validatePropagation(mount, c.SecurityContext, path)...)
	}
	devices, devicePaths := sets.New[string](), sets.New[string]()
	for i, device := range c.VolumeDevices {
		path := at.Child("volumeDevices").Index(i)
		errs = append(errs, needs("name", device.Name, "devicePath", device.DevicePath)(path)...)
		errs = append(errs, noBacksteps(device.DevicePath, path.Child("devicePath"))...)
		if volume := p.volumes[device.Name]; volume == nil {
			errs = append(errs, field.NotFound(path.Child("name"), device.Name))
		} else if volume.PersistentVolumeClaim == nil && volume.Ephemeral == nil {
			errs = append(errs, field.Invalid(path.Child("name"), device.Name,
				"can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"))
		}
		if devices.Has(device.Name) || names.Has(device.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), device.Name, "must be unique"))
		}
		if devicePaths.Has(device.DevicePath) || paths.Has(device.DevicePath) {
			errs = append(errs, field.Invalid(path.Child("devicePath"), device.DevicePath, "must be unique"))
		}
		devices.Insert(device.Name)
		devicePaths.Insert(device.DevicePath)
	}
	return errs
}

// validatePropagation requires a privileged container for mounts that the host sees, and read-only mounts for those
// that are so with all below them.
func validatePropagation(
	mount *corev1.VolumeMount, security *corev1.SecurityContext, at *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	propagation := ptr.Deref(mount.MountPropagation, corev1.MountPropagationNone)
	errs = append(errs, supported(at.Child("mountPropagation"), propagation, corev1.MountPropagationBidirectional,
		corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)...)
	if propagation == corev1.MountPropagationBidirectional && (security == nil || !isTrue(security.Privileged)) {
		errs = append(errs, field.Forbidden(at.Child("mountPropagation"),
			"Bidirectional mount propagation is available only to privileged containers"))
	}
	recursive, path := ptr.Deref(mount.RecursiveReadOnly, corev1.RecursiveReadOnlyDisabled),
		at.Child("recursiveReadOnly")
	errs = append(errs, supported(path, recursive, corev1.RecursiveReadOnlyDisabled,
		corev1.RecursiveReadOnlyIfPossible, corev1.RecursiveReadOnlyEnabled)...)
	if recursive != corev1.RecursiveReadOnlyDisabled &&
		(!mount.ReadOnly || propagation != corev1.MountPropagationNone) {
		errs = append(errs,
			field.Forbidden(path, "may only be specified when readOnly is true and mountPropagation is None"))
	}
	return errs
}
