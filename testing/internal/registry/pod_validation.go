package registry

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The requirements in this file are those of the Kubernetes API reference, Pod v1 core and Container v1 core.

func validatePod(pod, old *corev1.Pod) field.ErrorList {
	at := field.NewPath("spec")
	errs := validatePodSpec(&pod.Spec, at)
	switch {
	case old == nil:
	case !keepsDeadline(pod.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds):
		errs = append(errs, field.Invalid(at.Child("activeDeadlineSeconds"), pod.Spec.ActiveDeadlineSeconds,
			"must be less than or equal to previous value"))
	case len(pod.Spec.Containers) != len(old.Spec.Containers):
		errs = append(errs, field.Forbidden(at.Child("containers"), addRemove))
	case len(pod.Spec.InitContainers) != len(old.Spec.InitContainers):
		errs = append(errs, field.Forbidden(at.Child("initContainers"), addRemove))
	case !keepsTolerations(&pod.Spec, &old.Spec):
		errs = append(errs, field.Forbidden(at.Child("tolerations"),
			"existing toleration can not be modified except its tolerationSeconds"))
	case !onlyMutable(&pod.Spec, &old.Spec):
		errs = append(errs, field.Forbidden(at, "pod updates may not change fields other than "+
			"`spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, "+
			"`spec.tolerations` (only additions), `spec.terminationGracePeriodSeconds` (if negative)"))
	}
	return errs
}

const addRemove = "pod updates may not add or remove containers"

// onlyMutable reports whether only those fields of a pod with the same containers changed that an update may change,
// see "Pod update and replacement" in the documentation.
func onlyMutable(spec, old *corev1.PodSpec) bool {
	changed := spec.DeepCopy()
	for i := range changed.Containers {
		changed.Containers[i].Image = old.Containers[i].Image
	}
	for i := range changed.InitContainers {
		changed.InitContainers[i].Image = old.InitContainers[i].Image
	}
	changed.ActiveDeadlineSeconds = old.ActiveDeadlineSeconds
	changed.Tolerations = old.Tolerations
	if len(old.SchedulingGates) > 0 {
		changed.SchedulingGates, changed.NodeSelector = old.SchedulingGates, old.NodeSelector
		changed.Affinity = old.Affinity
	}
	return equality.Semantic.DeepEqual(changed, old)
}

// keepsDeadline reports whether a deadline is no later than it was.
func keepsDeadline(deadline, old *int64) bool {
	return old == nil || deadline != nil && *deadline <= *old
}

// keepsTolerations reports whether the tolerations are still there, whatever their time.
func keepsTolerations(spec, old *corev1.PodSpec) bool {
	for i := range old.Tolerations {
		if !slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool {
			t.TolerationSeconds = old.Tolerations[i].TolerationSeconds
			return t == old.Tolerations[i]
		}) {
			return false
		}
	}
	return true
}

// validateTemplate validates a template of pods that its controller starts again.
func validateTemplate(
	template *corev1.PodTemplateSpec, at *field.Path, policies ...corev1.RestartPolicy,
) field.ErrorList {
	errs := validateTemplateMetadata(template, at)
	errs = append(errs, validatePodSpec(&template.Spec, at.Child("spec"))...)
	if len(policies) > 0 {
		errs = append(errs, oneOf(at.Child("spec", "restartPolicy"), template.Spec.RestartPolicy, policies...)...)
	}
	return errs
}

func validatePodSpec(spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	volumes := sets.New[string]()
	var errs field.ErrorList
	for i := range spec.Volumes {
		volume, path := &spec.Volumes[i], at.Child("volumes").Index(i)
		errs = append(errs, uniqueLabel(path.Child("name"), volume.Name, volumes)...)
		errs = append(errs, validateVolume(&volume.VolumeSource, path)...)
	}
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(at.Child("containers"), ""))
	}
	names := sets.New[string]()
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"containers", spec.Containers}, {"initContainers", spec.InitContainers}} {
		for i := range list.containers {
			c, path := &list.containers[i], at.Child(list.name).Index(i)
			errs = append(errs, uniqueLabel(path.Child("name"), c.Name, names)...)
			errs = append(errs, validateContainer(c, volumes, path)...)
		}
	}
	errs = append(errs, oneOf(at.Child("restartPolicy"), spec.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	errs = append(errs, oneOf(at.Child("dnsPolicy"), spec.DNSPolicy, corev1.DNSClusterFirstWithHostNet,
		corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	errs = append(errs, validateLabels(spec.NodeSelector, at.Child("nodeSelector"))...)
	errs = append(errs, positive(at.Child("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds)...)
	errs = append(errs, validateScheduling(spec, at)...)
	for _, name := range []struct{ field, value string }{
		{"serviceAccountName", spec.ServiceAccountName}, {"nodeName", spec.NodeName},
		{"priorityClassName", spec.PriorityClassName},
	} {
		if name.value != "" {
			errs = append(errs, invalid(at.Child(name.field), name.value, subdomainName(name.value, false))...)
		}
	}
	return errs
}

// validateScheduling validates what concerns the host of a pod.
func validateScheduling(spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range spec.Tolerations {
		errs = append(errs, validateToleration(&spec.Tolerations[i], at.Child("tolerations").Index(i))...)
	}
	for _, name := range []struct{ field, value string }{{"hostname", spec.Hostname}, {"subdomain", spec.Subdomain}} {
		if name.value != "" {
			errs = append(errs, invalid(at.Child(name.field), name.value, labelName(name.value, false))...)
		}
	}
	if c := spec.SecurityContext; c != nil {
		errs = append(errs, notNegative(at.Child("securityContext", "runAsUser"), c.RunAsUser)...)
		errs = append(errs, notNegative(at.Child("securityContext", "runAsGroup"), c.RunAsGroup)...)
		errs = append(errs, notNegative(at.Child("securityContext", "fsGroup"), c.FSGroup)...)
	}
	ports := sets.New[portKey]()
	for i := range spec.Containers {
		for j := range spec.Containers[i].Ports {
			port, path := &spec.Containers[i].Ports[j], at.Child("containers").Index(i).Child("ports").Index(j)
			if port.HostPort == 0 {
				continue
			}
			key := portKey{port.Protocol, port.HostPort}
			if ports.Has(key) {
				errs = append(errs, field.Duplicate(path.Child("hostPort"), port.HostPort))
			}
			ports.Insert(key)
			if spec.HostNetwork && port.HostPort != port.ContainerPort {
				errs = append(errs, field.Invalid(path.Child("hostPort"), port.HostPort,
					"must match `containerPort` when `hostNetwork` is true"))
			}
		}
	}
	return errs
}

func validateToleration(t *corev1.Toleration, at *field.Path) field.ErrorList {
	errs := supported(at.Child("operator"), t.Operator, corev1.TolerationOpExists, corev1.TolerationOpEqual, "")
	if t.Key == "" && t.Operator != corev1.TolerationOpExists {
		errs = append(errs, field.Invalid(at.Child("operator"), t.Operator,
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	if t.Value != "" && t.Operator == corev1.TolerationOpExists {
		errs = append(errs, field.Invalid(at.Child("operator"), t.Value,
			"value must be empty when `operator` is 'Exists'"))
	}
	return append(errs, supported(at.Child("effect"), t.Effect, "", corev1.TaintEffectNoSchedule,
		corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
}

// uniqueLabel requires a name that is a DNS label and not among those that are used, and uses it.
func uniqueLabel(at *field.Path, name string, used sets.Set[string]) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if used.Has(name) {
		return field.ErrorList{field.Duplicate(at, name)}
	}
	used.Insert(name)
	return invalid(at, name, labelName(name, false))
}

// validateTemplateMetadata validates what the pods of a template are labelled with. In the errors of an API server the
// path has no "metadata".
func validateTemplateMetadata(template *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	errs := validateLabels(template.Labels, at.Child("labels"))
	return append(errs, apivalidation.ValidateAnnotations(template.Annotations, at.Child("annotations"))...)
}
