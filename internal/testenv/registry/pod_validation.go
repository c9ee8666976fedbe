package registry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What this file requires is required by the Kubernetes API reference, Pod v1 core and Container v1 core.

func validatePod(pod, old *corev1.Pod) field.ErrorList {
	at := field.NewPath("spec")
	errs := validatePodSpec(&pod.Spec, at)
	switch {
	case old == nil:
	case len(pod.Spec.Containers) != len(old.Spec.Containers):
		errs = append(errs, field.Forbidden(at.Child("containers"), addRemove))
	case len(pod.Spec.InitContainers) != len(old.Spec.InitContainers):
		errs = append(errs, field.Forbidden(at.Child("initContainers"), addRemove))
	case !onlyMutable(&pod.Spec, &old.Spec):
		errs = append(errs, field.Forbidden(at, "pod updates may not change fields other than "+
			"`spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, "+
			"`spec.tolerations` (only additions), `spec.terminationGracePeriodSeconds`"))
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
	changed.TerminationGracePeriodSeconds = old.TerminationGracePeriodSeconds
	changed.Tolerations = old.Tolerations
	if len(old.SchedulingGates) > 0 {
		changed.SchedulingGates, changed.NodeSelector = old.SchedulingGates, old.NodeSelector
		changed.Affinity = old.Affinity
	}
	return equality.Semantic.DeepEqual(changed, old)
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
	errs = append(errs, metav1validation.ValidateLabels(spec.NodeSelector, at.Child("nodeSelector"))...)
	errs = append(errs, positive(at.Child("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds)...)
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
	return errs
}

// validateTemplateMetadata validates what the pods of a template are labelled with. In the errors of an API server the
// path has no "metadata".
func validateTemplateMetadata(template *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(template.Labels, at.Child("labels"))
	return append(errs, apivalidation.ValidateAnnotations(template.Annotations, at.Child("annotations"))...)
}
