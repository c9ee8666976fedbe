package registry

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// validatePersistentVolume requires what the Kubernetes API reference requires, PersistentVolumeSpec v1 core. The
// source does not change.
func validatePersistentVolume(v, old *corev1.PersistentVolume) field.ErrorList {
	at, spec := field.NewPath("spec"), &v.Spec
	errs := validateVolumeSpec(spec, v.Name, at)
	if len(spec.Capacity) == 0 {
		errs = append(errs, field.Required(at.Child("capacity"), ""))
	}
	if _, ok := spec.Capacity[corev1.ResourceStorage]; !ok || len(spec.Capacity) > 1 {
		errs = append(errs, field.NotSupported(at.Child("capacity"), spec.Capacity,
			[]corev1.ResourceName{corev1.ResourceStorage}))
	}
	for name, amount := range ordered(spec.Capacity) {
		if amount.Sign() <= 0 {
			errs = append(errs, field.Invalid(at.Child("capacity").Key(string(name)), amount.String(),
				"must be greater than zero"))
		}
	}
	errs = append(errs, supported(at.Child("persistentVolumeReclaimPolicy"), spec.PersistentVolumeReclaimPolicy,
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle,
		corev1.PersistentVolumeReclaimRetain)...)
	errs = append(errs, validateVolumeMode(spec.VolumeMode, at.Child("volumeMode"))...)
	if spec.StorageClassName != "" {
		errs = append(errs, requiredName(at.Child("storageClassName"), spec.StorageClassName)...)
	}
	if class := spec.VolumeAttributesClassName; class != nil {
		errs = append(errs, requiredName(at.Child("volumeAttributesClassName"), *class)...)
		if spec.CSI == nil {
			errs = append(errs,
				field.Required(at.Child("csi"), "has to be specified when using volumeAttributesClassName"))
		}
	}
	if affinity := spec.NodeAffinity; affinity != nil && affinity.Required == nil {
		errs = append(errs, field.Required(at.Child("nodeAffinity", "required"), ""))
	} else if affinity != nil {
		errs = append(errs, validateNodeSelector(affinity.Required, at.Child("nodeAffinity", "required"))...)
	} else if spec.Local != nil {
		errs = append(errs, field.Required(at.Child("nodeAffinity"), "Local volume requires node affinity"))
	}
	if old == nil {
		return errs
	}
	return append(errs, validateVolumeUpdate(spec, &old.Spec, at)...)
}

// validateVolumeUpdate lets the secret that the source needs to grow come later.
func validateVolumeUpdate(spec, old *corev1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	source := spec.PersistentVolumeSource.DeepCopy()
	if source.CSI != nil && old.CSI != nil && old.CSI.ControllerExpandSecretRef == nil {
		source.CSI.ControllerExpandSecretRef = nil
	}
	if !equality.Semantic.DeepEqual(source, &old.PersistentVolumeSource) {
		errs = append(errs, field.Forbidden(at.Child("persistentvolumesource"),
			"spec.persistentvolumesource is immutable after creation"))
	}
	if !ptr.Equal(spec.VolumeMode, old.VolumeMode) {
		errs = append(errs, immutable(field.NewPath("volumeMode"), spec.VolumeMode))
	}
	// Where a volume is reached from does not change by default.
	if old.NodeAffinity != nil && !equality.Semantic.DeepEqual(spec.NodeAffinity, old.NodeAffinity) {
		errs = append(errs, immutable(field.NewPath("nodeAffinity"), spec.NodeAffinity))
	}
	if old.VolumeAttributesClassName != nil && spec.VolumeAttributesClassName == nil {
		errs = append(errs, field.Forbidden(at.Child("volumeAttributesClassName"),
			"update from non-nil value to nil is forbidden"))
	}
	return errs
}

// validateVolumeSpec requires what also a volume requires that is part of an attachment.
func validateVolumeSpec(spec *corev1.PersistentVolumeSpec, name string, at *field.Path) field.ErrorList {
	errs := validateAccessModes(spec.AccessModes, at.Child("accessModes"))
	if len(spec.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), ""))
	}
	sources := slices.Concat(persistentSources(&spec.PersistentVolumeSource),
		persistentDisks(&spec.PersistentVolumeSource))
	errs = append(errs, validateOneSource(sources, at)...)
	if i := spec.ISCSI; i != nil {
		errs = append(errs, validateInitiator(i.InitiatorName, name, i.TargetPortal, at.Child("iscsi"))...)
	}
	if h := spec.HostPath; h != nil && path.Clean(h.Path) == "/" &&
		spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		errs = append(errs, field.Forbidden(at.Child("persistentVolumeReclaimPolicy"),
			"may not be 'recycle' for a hostPath mount of '/'"))
	}
	return errs
}

// persistentSources are the sources of a volume, but for those that have another type in a pod.
func persistentSources(v *corev1.PersistentVolumeSource) []sourceCheck {
	s := slices.Concat(fileSources(&corev1.VolumeSource{HostPath: v.HostPath}),
		networkSources(&corev1.VolumeSource{NFS: v.NFS, Quobyte: v.Quobyte, Flocker: v.Flocker}),
		diskSources(&corev1.VolumeSource{
			GCEPersistentDisk: v.GCEPersistentDisk, AWSElasticBlockStore: v.AWSElasticBlockStore, FC: v.FC,
			VsphereVolume: v.VsphereVolume, PhotonPersistentDisk: v.PhotonPersistentDisk,
			PortworxVolume: v.PortworxVolume, AzureDisk: v.AzureDisk,
		}))
	if l := v.Local; l != nil {
		s = append(s, sourceCheck{"local", func(at *field.Path) field.ErrorList {
			return append(required(at.Child("path"), l.Path), noBacksteps(l.Path, at.Child("path"))...)
		}})
	}
	if c := v.CSI; c != nil {
		s = append(s, sourceCheck{"csi", func(at *field.Path) field.ErrorList {
			errs := append(validateDriverName(c.Driver, at.Child("driver")),
				required(at.Child("volumeHandle"), c.VolumeHandle)...)
			for name, ref := range ordered(map[string]*corev1.SecretReference{
				"controllerPublishSecretRef": c.ControllerPublishSecretRef,
				"controllerExpandSecretRef":  c.ControllerExpandSecretRef,
				"nodePublishSecretRef":       c.NodePublishSecretRef,
				"nodeExpandSecretRef":        c.NodeExpandSecretRef,
			}) {
				if ref != nil {
					errs = append(errs, requiredName(at.Child(name, "name"), ref.Name)...)
					errs = append(errs, requiredLabel(at.Child(name, "namespace"), ref.Namespace)...)
				}
			}
			return errs
		}})
	}
	if g := v.Glusterfs; g != nil {
		s = append(s, sourceCheck{"glusterfs", func(at *field.Path) field.ErrorList {
			errs := needs("endpoints", g.EndpointsName, "path", g.Path)(at)
			if g.EndpointsNamespace != nil {
				errs = append(errs, requiredLabel(at.Child("endpointsNamespace"), *g.EndpointsNamespace)...)
			}
			return errs
		}})
	}
	if c := v.CephFS; c != nil {
		s = append(s, sourceCheck{"cephfs", needs("monitors", few(c.Monitors))})
	}
	return s
}

// persistentDisks are the other sources.
func persistentDisks(v *corev1.PersistentVolumeSource) []sourceCheck {
	var s []sourceCheck
	if i := v.ISCSI; i != nil {
		s = append(s, sourceCheck{"iscsi", func(at *field.Path) field.ErrorList {
			chap := (i.DiscoveryCHAPAuth || i.SessionCHAPAuth) && i.SecretRef == nil
			errs := validateISCSI(i.TargetPortal, i.IQN, i.Lun, i.InitiatorName, chap, at)
			if i.SecretRef != nil {
				errs = append(errs, required(at.Child("secretRef", "name"), i.SecretRef.Name)...)
			}
			return errs
		}})
	}
	if r := v.RBD; r != nil {
		s = append(s, sourceCheck{"rbd", needs("monitors", few(r.CephMonitors), "image", r.RBDImage)})
	}
	if c := v.Cinder; c != nil {
		s = append(s, sourceCheck{"cinder", func(at *field.Path) field.ErrorList {
			errs := required(at.Child("volumeID"), c.VolumeID)
			if c.SecretRef != nil {
				errs = append(errs,
					needs("name", c.SecretRef.Name, "namespace", c.SecretRef.Namespace)(at.Child("secretRef"))...)
			}
			return errs
		}})
	}
	if f := v.FlexVolume; f != nil {
		s = append(s, sourceCheck{"flexVolume", func(at *field.Path) field.ErrorList {
			return validateFlex(f.Driver, f.Options, at)
		}})
	}
	if a := v.AzureFile; a != nil {
		s = append(s, sourceCheck{"azureFile", needs("secretName", a.SecretName, "shareName", a.ShareName,
			"secretNamespace", ptr.Deref(a.SecretNamespace, "."))})
	}
	if d := v.ScaleIO; d != nil {
		s = append(s,
			sourceCheck{"scaleIO", needs("gateway", d.Gateway, "system", d.System, "volumeName", d.VolumeName)})
	}
	if o := v.StorageOS; o != nil {
		s = append(s, sourceCheck{"storageos", func(at *field.Path) field.ErrorList {
			errs := requiredLabel(at.Child("volumeName"), o.VolumeName)
			if o.VolumeNamespace != "" {
				errs = append(errs, requiredLabel(at.Child("volumeNamespace"), o.VolumeNamespace)...)
			}
			if o.SecretRef != nil {
				errs = append(errs,
					needs("name", o.SecretRef.Name, "namespace", o.SecretRef.Namespace)(at.Child("secretRef"))...)
			}
			return errs
		}})
	}
	return s
}
