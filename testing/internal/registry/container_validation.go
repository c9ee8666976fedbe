package registry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podRules are what containers of a pod refer to.
type podRules struct {
	spec    *corev1.PodSpec
	volumes map[string]*corev1.VolumeSource
	claims  sets.Set[string]
}

func newPodRules(spec *corev1.PodSpec) podRules {
	p := podRules{spec, map[string]*corev1.VolumeSource{}, sets.New[string]()}
	for i := range spec.Volumes {
		p.volumes[spec.Volumes[i].Name] = &spec.Volumes[i].VolumeSource
	}
	for i := range spec.ResourceClaims {
		p.claims.Insert(spec.ResourceClaims[i].Name)
	}
	return p
}

// validateContainer validates all but the name, and but what containers of some lists alone have.
func (p podRules) validateContainer(c *corev1.Container, at *field.Path) field.ErrorList {
	errs := required(at.Child("image"), c.Image)
	errs = append(errs, validatePullPolicy(c.ImagePullPolicy, at)...)
	errs = append(errs, oneOf(at.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, validatePorts(c.Ports, at.Child("ports"))...)
	errs = append(errs, p.validateEnv(c.Env, at.Child("env"))...)
	errs = append(errs, validateEnvFrom(c.EnvFrom, at.Child("envFrom"))...)
	errs = append(errs, p.validateMounts(c, at)...)
	errs = append(errs, validateResources(&c.Resources, p.claims, validateContainerResource, at.Child("resources"))...)
	errs = append(errs, p.validateResize(c.ResizePolicy, at.Child("resizePolicy"))...)
	return append(errs, p.validateSecurity(c.SecurityContext, at.Child("securityContext"))...)
}

func validatePullPolicy(policy corev1.PullPolicy, at *field.Path) field.ErrorList {
	return oneOf(at.Child("imagePullPolicy"), policy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
}

// validateRestarts validates when a container alone is started again.
func validateRestarts(c *corev1.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	rules := at.Child("restartPolicyRules")
	if c.RestartPolicy == nil && len(c.RestartPolicyRules) > 0 {
		errs = append(errs,
			field.Required(at.Child("restartPolicy"), "must specify restartPolicy when restart rules are used"))
	}
	if c.RestartPolicy != nil {
		errs = append(errs, supported(at.Child("restartPolicy"), *c.RestartPolicy, corev1.ContainerRestartPolicyAlways,
			corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)...)
	}
	if len(c.RestartPolicyRules) > maxRestartRules {
		errs = append(errs, field.TooMany(rules, len(c.RestartPolicyRules), maxRestartRules))
	}
	for i, rule := range c.RestartPolicyRules {
		errs = append(errs, supported(rules.Index(i).Child("action"), rule.Action,
			corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers)...)
		codes := rules.Index(i).Child("exitCodes")
		if rule.ExitCodes == nil {
			errs = append(errs, field.Required(codes, "must be specified"))
			continue
		}
		errs = append(errs, supported(codes.Child("operator"), rule.ExitCodes.Operator,
			corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)...)
		if len(rule.ExitCodes.Values) > maxExitCodes {
			errs = append(errs, field.TooMany(codes.Child("values"), len(rule.ExitCodes.Values), maxExitCodes))
		}
	}
	return errs
}

const maxRestartRules = 20

// validateResize requires that containers that are not started again are resized as they run.
func (p podRules) validateResize(policies []corev1.ContainerResizePolicy, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[corev1.ResourceName]()
	for i, policy := range policies {
		if seen.Has(policy.ResourceName) {
			errs = append(errs, field.Duplicate(at.Index(i), policy.ResourceName))
		}
		seen.Insert(policy.ResourceName)
		errs = append(errs, oneOf(at, policy.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)...)
		errs = append(errs, oneOf(at, policy.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)...)
		if p.spec.RestartPolicy == corev1.RestartPolicyNever && policy.RestartPolicy != corev1.NotRequired {
			errs = append(errs, field.Invalid(at, policy.RestartPolicy,
				"must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
		}
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

func (p podRules) validateEnv(env []corev1.EnvVar, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range env {
		path, from := at.Index(i), env[i].ValueFrom
		errs = append(errs, validateEnvName(env[i].Name, path.Child("name"))...)
		if from == nil {
			continue
		}
		path = path.Child("valueFrom")
		if env[i].Value != "" {
			errs = append(errs, field.Invalid(path, "", "may not be specified when `value` is not empty"))
		}
		errs = append(errs, p.validateEnvSource(from, path)...)
	}
	return errs
}

func validateEnvName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return required(at, name)
	}
	return invalid(at, name, validation.IsRelaxedEnvVarName(name))
}

func (p podRules) validateEnvSource(from *corev1.EnvVarSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	sources := 0
	key := func(name, object, key string) {
		sources++
		path := at.Child(name)
		errs = append(errs, invalid(path.Child("name"), object, subdomainName(object, false))...)
		if key == "" {
			errs = append(errs, field.Required(path.Child("key"), ""))
		} else {
			errs = append(errs, invalid(path.Child("key"), key, validation.IsConfigMapKey(key))...)
		}
	}
	if ref := from.ConfigMapKeyRef; ref != nil {
		key("configMapKeyRef", ref.Name, ref.Key)
	}
	if ref := from.SecretKeyRef; ref != nil {
		key("secretKeyRef", ref.Name, ref.Key)
	}
	if from.FieldRef != nil {
		sources++
		errs = append(errs, validateFieldRef(from.FieldRef, envFields, at.Child("fieldRef"))...)
	}
	if from.ResourceFieldRef != nil {
		sources++
		errs = append(errs, validateResourceRef(from.ResourceFieldRef, at.Child("resourceFieldRef"))...)
	}
	if from.FileKeyRef != nil {
		sources++
		errs = append(errs, p.validateFileKey(from.FileKeyRef, at.Child("fileKeyRef"))...)
	}
	if sources != 1 {
		errs = append(errs, field.Invalid(at, "", "must specify one of: `fieldRef`, `resourceFieldRef`, "+
			"`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	}
	return errs
}

// validateFileKey requires a file of a volume of the pod that is empty at first.
func (p podRules) validateFileKey(ref *corev1.FileKeySelector, at *field.Path) field.ErrorList {
	errs := append(validateEnvName(ref.Key, at.Child("key")), required(at.Child("path"), ref.Path)...)
	errs = append(errs, noBacksteps(ref.Path, at.Child("path"))...)
	errs = append(errs, requiredLabel(at.Child("volumeName"), ref.VolumeName)...)
	if volume := p.volumes[ref.VolumeName]; volume == nil || volume.EmptyDir == nil {
		errs = append(errs, field.Invalid(at.Child("volumeName"), ref.VolumeName,
			"referenced volume must be of type emptyDir"))
	}
	return errs
}

// validateEnvFrom requires one source, by its name.
func validateEnvFrom(env []corev1.EnvFromSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range env {
		path := at.Index(i)
		config, secret := env[i].ConfigMapRef, env[i].SecretRef
		if env[i].Prefix != "" {
			errs = append(errs, validateEnvName(env[i].Prefix, path.Child("prefix"))...)
		}
		if (config == nil) == (secret == nil) {
			// In the errors of an API server the path has no index.
			errs = append(errs, field.Invalid(at, "", "must specify one of: `configMapRef` or `secretRef`"))
		}
		if config != nil {
			errs = append(errs, requiredPrefix(path.Child("configMapRef", "name"), config.Name)...)
		}
		if secret != nil {
			errs = append(errs, requiredPrefix(path.Child("secretRef", "name"), secret.Name)...)
		}
	}
	return errs
}

// requiredPrefix requires what a DNS subdomain can begin with.
func requiredPrefix(at *field.Path, value string) field.ErrorList {
	if value == "" {
		return required(at, value)
	}
	return invalid(at, value, subdomainName(value, true))
}
