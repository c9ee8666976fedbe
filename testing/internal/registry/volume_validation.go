package registry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolume requires one source with what identifies it.
func validateVolume(v *corev1.VolumeSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	sources := 0
	source := func(is bool, name, required, value string) {
		if !is {
			return
		}
		sources++
		if sources > 1 {
			errs = append(errs, field.Forbidden(at.Child(name), "may not specify more than 1 volume type"))
			return
		}
		if required != "" && value == "" {
			errs = append(errs, field.Required(at.Child(name, required), ""))
		}
	}
	source(v.EmptyDir != nil, "emptyDir", "", "")
	if v.HostPath != nil {
		source(true, "hostPath", "path", v.HostPath.Path)
	}
	if v.Secret != nil {
		source(true, "secret", "secretName", v.Secret.SecretName)
	}
	if v.PersistentVolumeClaim != nil {
		source(true, "persistentVolumeClaim", "claimName", v.PersistentVolumeClaim.ClaimName)
	}
	if v.ConfigMap != nil {
		source(true, "configMap", "name", v.ConfigMap.Name)
	}
	if v.CSI != nil {
		source(true, "csi", "driver", v.CSI.Driver)
	}
	source(v.DownwardAPI != nil, "downwardAPI", "", "")
	source(v.Projected != nil, "projected", "", "")
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		source(true, "ephemeral", "", "")
		errs = append(errs, validateClaimSpec(&v.Ephemeral.VolumeClaimTemplate.Spec,
			at.Child("ephemeral", "volumeClaimTemplate", "spec"))...)
	}
	return append(errs, validateVolumeFiles(v, at)...)
}

// validateVolumeFiles validates how the contents of an object become files.
func validateVolumeFiles(v *corev1.VolumeSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if v.ConfigMap != nil {
		errs = append(errs, validateItems(v.ConfigMap.Items, v.ConfigMap.DefaultMode, at.Child("configMap"))...)
	}
	if v.Secret != nil {
		errs = append(errs, validateItems(v.Secret.Items, v.Secret.DefaultMode, at.Child("secret"))...)
	}
	return errs
}

func validateItems(items []corev1.KeyToPath, mode *int32, at *field.Path) field.ErrorList {
	errs := validateMode(mode, at.Child("defaultMode"))
	for i := range items {
		path := at.Child("items").Index(i)
		if items[i].Key == "" {
			errs = append(errs, field.Required(path.Child("key"), ""))
		}
		if items[i].Path == "" {
			errs = append(errs, field.Required(path.Child("path"), ""))
		}
		errs = append(errs, validateMode(items[i].Mode, path.Child("mode"))...)
	}
	return errs
}

// validateMode requires permissions of a file, if there are any.
func validateMode(mode *int32, at *field.Path) field.ErrorList {
	if mode == nil || *mode >= 0 && *mode <= 0o777 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *mode, "must be a number between 0 and 0777 (octal), both inclusive")}
}
