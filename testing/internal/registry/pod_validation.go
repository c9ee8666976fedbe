package registry

import (
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The requirements in this file are those of the Kubernetes API reference, Pod v1 core and Container v1 core.

func validatePod(pod, old *corev1.Pod) field.ErrorList {
	at, spec := field.NewPath("spec"), &pod.Spec
	errs := validatePodSpec(spec, pod.Name, at)
	errs = append(errs, validatePodAnnotations(pod.Annotations, spec, metadata.Child("annotations"))...)
	errs = append(errs, validateImages(spec.Containers, at.Child("containers"))...)
	errs = append(errs, validateImages(spec.InitContainers, at.Child("initContainers"))...)
	if spec.ServiceAccountName == "" && readsToken(spec) {
		errs = append(errs, field.Forbidden(at.Child("volumes"),
			"a token must not be specified when serviceAccountName is not set"))
	}
	if old == nil {
		if len(spec.EphemeralContainers) > 0 {
			errs = append(errs, field.Forbidden(at.Child("ephemeralContainers"), "cannot be set on create"))
		}
		if spec.NodeName != "" && len(spec.SchedulingGates) > 0 {
			errs = append(errs, field.Forbidden(at.Child("nodeName"),
				"cannot be set until all schedulingGates have been cleared"))
		}
		return errs
	}
	return append(errs, validatePodUpdate(spec, &old.Spec, at)...)
}

// validateImages requires that no image begins or ends with a space. Templates may have that.
func validateImages(containers []corev1.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, c := range containers {
		if c.Image != strings.TrimSpace(c.Image) {
			errs = append(errs, field.Invalid(at.Index(i).Child("image"), c.Image,
				"must not have leading or trailing whitespace"))
		}
	}
	return errs
}

// readsToken reports whether a volume has a token of the service account.
func readsToken(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
		return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
			return s.ServiceAccountToken != nil
		})
	})
}

// validatePodUpdate says which changes are forbidden, see "Pod update and replacement" in the documentation.
func validatePodUpdate(spec, old *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case !keepsDeadline(spec.ActiveDeadlineSeconds, old.ActiveDeadlineSeconds):
		errs = append(errs, field.Invalid(at.Child("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds,
			"must be less than or equal to previous value"))
	case len(spec.Containers) != len(old.Containers):
		errs = append(errs, field.Forbidden(at.Child("containers"), addRemove))
	case len(spec.InitContainers) != len(old.InitContainers):
		errs = append(errs, field.Forbidden(at.Child("initContainers"), addRemove))
	case !keepsTolerations(spec, old):
		errs = append(errs, field.Forbidden(at.Child("tolerations"),
			"existing toleration can not be modified except its tolerationSeconds"))
	case slices.ContainsFunc(spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool {
		return !slices.Contains(old.SchedulingGates, g)
	}):
		errs = append(errs, field.Forbidden(at.Child("schedulingGates"), "only deletion is allowed"))
	case len(old.SchedulingGates) > 0 && !narrows(spec, old):
		errs = append(errs, field.Invalid(at.Child("nodeSelector"), spec.NodeSelector,
			"only additions to where a gated pod may run are allowed"))
	case !onlyMutable(spec, old):
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
		setNodeAffinity(changed, nodeAffinity(old))
	}
	return equality.Semantic.DeepEqual(changed, old)
}

func nodeAffinity(spec *corev1.PodSpec) *corev1.NodeAffinity {
	if spec.Affinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity
}

func setNodeAffinity(spec *corev1.PodSpec, nodes *corev1.NodeAffinity) {
	if spec.Affinity == nil && nodes == nil {
		return
	}
	setDefault(&spec.Affinity, corev1.Affinity{})
	spec.Affinity.NodeAffinity = nodes
	if *spec.Affinity == (corev1.Affinity{}) {
		spec.Affinity = nil
	}
}

// narrows reports whether a pod runs only where it could run before: labels of nodes are added, and requirements to
// each term. What is preferred may change.
func narrows(spec, old *corev1.PodSpec) bool {
	for key, value := range old.NodeSelector {
		if got, ok := spec.NodeSelector[key]; !ok || got != value {
			return false
		}
	}
	was, is := nodeAffinity(old), nodeAffinity(spec)
	if was == nil || was.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	if is == nil || is.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := is.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	before := was.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != len(before) {
		return false
	}
	for i, t := range terms {
		// A term without requirements matches no node, so nothing can be added to it.
		if len(before[i].MatchExpressions)+len(before[i].MatchFields) == 0 &&
			len(t.MatchExpressions)+len(t.MatchFields) > 0 || !begins(t.MatchExpressions, before[i].MatchExpressions) ||
			!begins(t.MatchFields, before[i].MatchFields) {
			return false
		}
	}
	return true
}

func begins(list, with []corev1.NodeSelectorRequirement) bool {
	return len(list) >= len(with) && equality.Semantic.DeepEqual(list[:len(with)], with)
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

// validateLasting validates a template of pods that run until they are deleted.
func validateLasting(template *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	errs := validateTemplate(template, at)
	at = at.Child("spec")
	errs = append(errs,
		supported(at.Child("restartPolicy"), template.Spec.RestartPolicy, corev1.RestartPolicyAlways)...)
	if template.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(at.Child("activeDeadlineSeconds"), "is not supported"))
	}
	return errs
}

func validateTemplate(template *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	errs := validateTemplateMetadata(template, at)
	errs = append(errs, validatePodAnnotations(template.Annotations, &template.Spec, at.Child("annotations"))...)
	errs = append(errs, validatePodSpec(&template.Spec, "", at.Child("spec"))...)
	if len(template.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(at.Child("spec", "ephemeralContainers"),
			"ephemeral containers not allowed in pod template"))
	}
	return errs
}

// validatePodSpec requires what pods and their templates have in common. A template has no name.
func validatePodSpec(spec *corev1.PodSpec, name string, at *field.Path) field.ErrorList {
	p := newPodRules(spec)
	errs := validateVolumes(spec.Volumes, name, at.Child("volumes"))
	errs = append(errs, p.validateContainers(at)...)
	errs = append(errs, p.validateClaims(at.Child("resourceClaims"))...)
	errs = append(errs, p.validatePodResources(at.Child("resources"))...)
	if spec.Overhead != nil {
		errs = append(errs, validateResources(&corev1.ResourceRequirements{Limits: spec.Overhead}, nil,
			validateContainerResource, at.Child("overhead"))...)
	}
	errs = append(errs, validatePodSecurity(spec, at.Child("securityContext"))...)
	errs = append(errs, p.validateHost(at)...)
	errs = append(errs, validateDNS(spec, at)...)
	errs = append(errs, validateScheduling(spec, at)...)
	errs = append(errs, oneOf(at.Child("restartPolicy"), spec.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	errs = append(errs, between(at.Child("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds, 1, math.MaxInt32)...)
	for i, gate := range spec.ReadinessGates {
		errs = append(errs, invalid(at.Child("readinessGates").Index(i).Child("conditionType"), gate.ConditionType,
			validation.IsQualifiedName(string(gate.ConditionType)))...)
	}
	runtime := ""
	if spec.RuntimeClassName != nil {
		// A name that is there must not be empty.
		runtime = *spec.RuntimeClassName
		errs = append(errs, invalid(at.Child("runtimeClassName"), runtime, subdomainName(runtime, false))...)
	}
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

// validateScheduling validates on which node a pod runs, and when.
func validateScheduling(spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	errs := validateLabels(spec.NodeSelector, at.Child("nodeSelector"))
	errs = append(errs, validateTolerations(spec.Tolerations, at.Child("tolerations"))...)
	errs = append(errs, validatePodAffinity(spec.Affinity, at.Child("affinity"))...)
	errs = append(errs, validateSpread(spec.TopologySpreadConstraints, at.Child("topologySpreadConstraints"))...)
	for i, gate := range spec.SchedulingGates {
		path := at.Child("schedulingGates").Index(i)
		errs = append(errs, invalid(path, gate.Name, validation.IsQualifiedName(gate.Name))...)
		if slices.Contains(spec.SchedulingGates[:i], gate) {
			errs = append(errs, field.Duplicate(path, gate.Name))
		}
	}
	if policy := spec.PreemptionPolicy; policy != nil {
		errs = append(errs, oneOf(at.Child("preemptionPolicy"), *policy, corev1.PreemptLowerPriority,
			corev1.PreemptNever)...)
	}
	return errs
}

// validateTemplateMetadata validates what the pods of a template are labelled with. In the errors of an API server the
// path has no "metadata".
func validateTemplateMetadata(template *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	errs := validateLabels(template.Labels, at.Child("labels"))
	return append(errs, apivalidation.ValidateAnnotations(template.Annotations, at.Child("annotations"))...)
}

// validatePodAnnotations validates annotations that say how pods are deleted and run. Fields have taken the place of
// those of profiles.
func validatePodAnnotations(annotations map[string]string, spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if cost, ok := annotations[corev1.PodDeletionCost]; ok {
		if n, err := strconv.ParseInt(cost, 10, 32); err != nil || cost[0] == '+' || strconv.FormatInt(n, 10) != cost {
			errs = append(errs, field.Invalid(at.Key(corev1.PodDeletionCost), cost, "must be a 32bit integer"))
		}
	}
	if mirror, ok := annotations[corev1.MirrorPodAnnotationKey]; ok && spec.NodeName == "" {
		errs = append(errs, field.Invalid(at.Key(corev1.MirrorPodAnnotationKey), mirror,
			"must set spec.nodeName if mirror pod annotation is set"))
	}
	return errs
}
