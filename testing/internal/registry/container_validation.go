package registry

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateContainer validates all but the name.
func validateContainer(c *corev1.Container, volumes sets.Set[string], at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case c.Image == "":
		errs = append(errs, field.Required(at.Child("image"), ""))
	case c.Image != strings.TrimSpace(c.Image):
		errs = append(errs, field.Invalid(at.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs, oneOf(at.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways,
		corev1.PullIfNotPresent, corev1.PullNever)...)
	errs = append(errs, validatePorts(c.Ports, at.Child("ports"))...)
	errs = append(errs, validateEnv(c.Env, at.Child("env"))...)
	errs = append(errs, validateEnvFrom(c.EnvFrom, at.Child("envFrom"))...)
	errs = append(errs, validateMounts(c.VolumeMounts, volumes, at.Child("volumeMounts"))...)
	errs = append(errs, validateResources(&c.Resources, at.Child("resources"))...)
	errs = append(errs, validateProbe(c.LivenessProbe, true, at.Child("livenessProbe"))...)
	errs = append(errs, validateProbe(c.ReadinessProbe, false, at.Child("readinessProbe"))...)
	errs = append(errs, validateProbe(c.StartupProbe, true, at.Child("startupProbe"))...)
	if c.Lifecycle != nil {
		errs = append(errs, validateHook(c.Lifecycle.PostStart, at.Child("lifecycle", "postStart"))...)
		errs = append(errs, validateHook(c.Lifecycle.PreStop, at.Child("lifecycle", "preStop"))...)
	}
	return errs
}

func validatePorts(ports []corev1.ContainerPort, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range ports {
		port, path := &ports[i], at.Index(i)
		if port.Name != "" {
			messages := validation.IsValidPortName(port.Name)
			errs = append(errs, invalid(path.Child("name"), port.Name, messages)...)
			if len(messages) == 0 && names.Has(port.Name) {
				errs = append(errs, field.Duplicate(path.Child("name"), port.Name))
			}
			names.Insert(port.Name)
		}
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(path.Child("containerPort"), ""))
		} else {
			errs = append(errs, validatePortNumber(path.Child("containerPort"), port.ContainerPort)...)
		}
		if port.HostPort != 0 {
			errs = append(errs, validatePortNumber(path.Child("hostPort"), port.HostPort)...)
		}
		errs = append(errs, validateProtocol(path.Child("protocol"), port.Protocol)...)
	}
	return errs
}

func validatePortNumber(at *field.Path, port int32) field.ErrorList {
	return invalid(at, port, validation.IsValidPortNum(int(port)))
}

func validateProtocol(at *field.Path, protocol corev1.Protocol) field.ErrorList {
	return oneOf(at, protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
}

func validateEnv(env []corev1.EnvVar, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range env {
		path := at.Index(i)
		if env[i].Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		} else {
			errs = append(errs, invalid(path.Child("name"), env[i].Name,
				validation.IsRelaxedEnvVarName(env[i].Name))...)
		}
		from := env[i].ValueFrom
		if from == nil {
			continue
		}
		if env[i].Value != "" {
			errs = append(errs, field.Invalid(path.Child("valueFrom"), "",
				"may not be specified when `value` is not empty"))
		}
		errs = append(errs, validateEnvSource(from, path.Child("valueFrom"))...)
	}
	return errs
}

func validateEnvSource(from *corev1.EnvVarSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	key := func(at *field.Path, key string) {
		if key == "" {
			errs = append(errs, field.Required(at, ""))
		} else {
			errs = append(errs, invalid(at, key, validation.IsConfigMapKey(key))...)
		}
	}
	if ref := from.ConfigMapKeyRef; ref != nil {
		key(at.Child("configMapKeyRef", "key"), ref.Key)
	}
	if ref := from.SecretKeyRef; ref != nil {
		key(at.Child("secretKeyRef", "key"), ref.Key)
	}
	if *from == (corev1.EnvVarSource{}) {
		errs = append(errs, field.Invalid(at, "", "must specify one of: `fieldRef`, `resourceFieldRef`, "+
			"`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	}
	return errs
}

// validateEnvFrom requires one source, by its name.
func validateEnvFrom(env []corev1.EnvFromSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range env {
		path := at.Index(i)
		config, secret := env[i].ConfigMapRef, env[i].SecretRef
		if (config == nil) == (secret == nil) {
			// In the errors of an API server the path has no index.
			errs = append(errs, field.Invalid(at, "", "must specify one of: `configMapRef` or `secretRef`"))
		}
		if config != nil && config.Name == "" {
			errs = append(errs, field.Required(path.Child("configMapRef", "name"), ""))
		}
		if secret != nil && secret.Name == "" {
			errs = append(errs, field.Required(path.Child("secretRef", "name"), ""))
		}
	}
	return errs
}

func validateMounts(mounts []corev1.VolumeMount, volumes sets.Set[string], at *field.Path) field.ErrorList {
	var errs field.ErrorList
	paths := sets.New[string]()
	for i := range mounts {
		mount, path := &mounts[i], at.Index(i)
		if mount.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		}
		if !volumes.Has(mount.Name) {
			errs = append(errs, field.NotFound(path.Child("name"), mount.Name))
		}
		switch {
		case mount.MountPath == "":
			errs = append(errs, field.Required(path.Child("mountPath"), ""))
		case paths.Has(mount.MountPath):
			errs = append(errs, field.Invalid(path.Child("mountPath"), mount.MountPath, "must be unique"))
		}
		paths.Insert(mount.MountPath)
	}
	return errs
}

// validateResources requires amounts that are not negative, and requests within the limits.
func validateResources(resources *corev1.ResourceRequirements, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(resources.Limits)) {
		limit := resources.Limits[name]
		if limit.Sign() < 0 {
			errs = append(errs, field.Invalid(at.Child("limits").Key(string(name)), limit.String(),
				"must be greater than or equal to 0"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(resources.Requests)) {
		request := resources.Requests[name]
		if request.Sign() < 0 {
			errs = append(errs, field.Invalid(at.Child("requests").Key(string(name)), request.String(),
				"must be greater than or equal to 0"))
		}
		if limit, ok := resources.Limits[name]; ok && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(at.Child("requests"), request.String(),
				"must be less than or equal to "+string(name)+" limit of "+limit.String()))
		}
	}
	return errs
}
