package registry

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateDeployment requires what the Kubernetes API reference requires, DeploymentSpec v1 apps.
func validateDeployment(d, old *appsv1.Deployment) field.ErrorList {
	at, spec := field.NewPath("spec"), &d.Spec
	errs := validateSelected(spec.Selector, &spec.Template, at)
	errs = append(errs, validateLasting(&spec.Template, at.Child("template"))...)
	errs = append(errs, notNegative(at.Child("replicas"), spec.Replicas)...)
	errs = append(errs, notNegative(at.Child("minReadySeconds"), &spec.MinReadySeconds)...)
	errs = append(errs, notNegative(at.Child("revisionHistoryLimit"), spec.RevisionHistoryLimit)...)
	errs = append(errs, validateDeploymentStrategy(&spec.Strategy, at.Child("strategy"))...)
	if deadline := spec.ProgressDeadlineSeconds; deadline != nil {
		errs = append(errs, notNegative(at.Child("progressDeadlineSeconds"), deadline)...)
		if *deadline <= spec.MinReadySeconds {
			errs = append(errs, field.Invalid(at.Child("progressDeadlineSeconds"), *deadline,
				"must be greater than minReadySeconds"))
		}
	}
	if old != nil {
		errs = append(errs, validateSameSelector(spec.Selector, old.Spec.Selector, at)...)
	}
	return errs
}

func validateDeploymentStrategy(strategy *appsv1.DeploymentStrategy, at *field.Path) field.ErrorList {
	rolling := at.Child("rollingUpdate")
	switch strategy.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if strategy.RollingUpdate != nil {
			return field.ErrorList{field.Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'")}
		}
		return nil
	case appsv1.RollingUpdateDeploymentStrategyType:
		if strategy.RollingUpdate == nil {
			return field.ErrorList{field.Required(rolling, "this should be defaulted and never be nil")}
		}
		unavailable, surge := strategy.RollingUpdate.MaxUnavailable, strategy.RollingUpdate.MaxSurge
		errs := append(validateShare(unavailable, rolling.Child("maxUnavailable")),
			validateAmount(surge, rolling.Child("maxSurge"))...)
		if isZero(unavailable) && isZero(surge) {
			errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), unavailable,
				"may not be 0 when `maxSurge` is 0"))
		}
		return errs
	default:
		return oneOf(at, strategy.Type, appsv1.RecreateDeploymentStrategyType,
			appsv1.RollingUpdateDeploymentStrategyType)
	}
}

// validateAmount requires a number that is not negative, or a percentage.
func validateAmount(amount *intstr.IntOrString, at *field.Path) field.ErrorList {
	if amount == nil {
		return nil
	}
	if amount.Type == intstr.Int {
		return notNegative(at, &amount.IntVal)
	}
	digits, percent := strings.CutSuffix(amount.StrVal, "%")
	if _, err := strconv.ParseUint(digits, 10, 31); !percent || err != nil {
		return field.ErrorList{field.Invalid(at, amount.StrVal, "a valid percent string must be a numeric string "+
			"followed by an ending '%' (e.g. '1%' or '93%')")}
	}
	return nil
}

func isZero(amount *intstr.IntOrString) bool {
	return amount == nil || amount.Type == intstr.Int && amount.IntVal == 0 ||
		amount.Type == intstr.String && strings.Trim(amount.StrVal, "0") == "%"
}

// validateSelected requires a selector that selects the pods of the template.
func validateSelected(
	selector *metav1.LabelSelector, template *corev1.PodTemplateSpec, at *field.Path,
) field.ErrorList {
	path := at.Child("selector")
	if selector == nil {
		return field.ErrorList{field.Required(path, ""), notSelected(template, at)}
	}
	errs := validateSelector(selector, path)
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(path, selector, "empty selector is invalid"))
	}
	matches, err := selects(selector, template.Labels)
	if err != nil {
		return append(errs, field.Invalid(path, selector, "invalid label selector"))
	}
	if !matches {
		errs = append(errs, notSelected(template, at))
	}
	return errs
}

// selects reports whether a selector matches labels. One of usual labels alone is not parsed.
func selects(selector *metav1.LabelSelector, of map[string]string) (bool, error) {
	if len(selector.MatchExpressions) == 0 && areUsual(selector.MatchLabels) {
		for key, value := range selector.MatchLabels {
			if got, ok := of[key]; !ok || got != value {
				return false, nil
			}
		}
		return true, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(of)), err
}

func notSelected(template *corev1.PodTemplateSpec, at *field.Path) *field.Error {
	return field.Invalid(at.Child("template", "metadata", "labels"), template.Labels,
		"`selector` does not match template `labels`")
}

func validateSameSelector(selector, old *metav1.LabelSelector, at *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(selector, old) {
		return nil
	}
	return field.ErrorList{immutable(at.Child("selector"), selector)}
}

// validateReplicaSet requires what the Kubernetes API reference requires, ReplicaSetSpec v1 apps.
func validateReplicaSet(r, old *appsv1.ReplicaSet) field.ErrorList {
	at, spec := field.NewPath("spec"), &r.Spec
	errs := validateSelected(spec.Selector, &spec.Template, at)
	errs = append(errs, validateLasting(&spec.Template, at.Child("template"))...)
	errs = append(errs, notNegative(at.Child("replicas"), spec.Replicas)...)
	errs = append(errs, notNegative(at.Child("minReadySeconds"), &spec.MinReadySeconds)...)
	if old != nil {
		errs = append(errs, validateSameSelector(spec.Selector, old.Spec.Selector, at)...)
	}
	return errs
}

// validateDaemonSet requires what the Kubernetes API reference requires, DaemonSetSpec v1 apps.
func validateDaemonSet(d, old *appsv1.DaemonSet) field.ErrorList {
	at, spec := field.NewPath("spec"), &d.Spec
	var errs field.ErrorList
	if spec.Selector == nil {
		errs = append(errs, notSelected(&spec.Template, at))
	} else {
		errs = append(errs, validateSelected(spec.Selector, &spec.Template, at)...)
	}
	errs = append(errs, validateLasting(&spec.Template, at.Child("template"))...)
	errs = append(errs, notNegative(at.Child("minReadySeconds"), &spec.MinReadySeconds)...)
	errs = append(errs, notNegative(at.Child("revisionHistoryLimit"), spec.RevisionHistoryLimit)...)
	errs = append(errs, validateDaemonStrategy(&spec.UpdateStrategy, at.Child("updateStrategy"))...)
	if generation, ok := d.Annotations[appsv1.DeprecatedTemplateGeneration]; ok {
		if _, err := strconv.ParseInt(generation, 10, 64); err != nil {
			errs = append(errs, field.Invalid(metadata.Child("annotations").Key(appsv1.DeprecatedTemplateGeneration),
				generation, err.Error()))
		}
	}
	if old != nil {
		errs = append(errs, validateSameSelector(spec.Selector, old.Spec.Selector, at)...)
	}
	return errs
}

// validateDaemonStrategy requires that nodes are without a pod, or have two of them, for a while, but not both.
func validateDaemonStrategy(strategy *appsv1.DaemonSetUpdateStrategy, at *field.Path) field.ErrorList {
	errs := oneOf(at, strategy.Type, appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType)
	rolling := strategy.RollingUpdate
	if strategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return errs
	}
	at = at.Child("rollingUpdate")
	if rolling == nil {
		return append(errs, field.Required(at, ""))
	}
	errs = append(errs, validateShare(rolling.MaxUnavailable, at.Child("maxUnavailable"))...)
	errs = append(errs, validateShare(rolling.MaxSurge, at.Child("maxSurge"))...)
	switch unavailable, surge := !isZero(rolling.MaxUnavailable), !isZero(rolling.MaxSurge); {
	case unavailable && surge:
		errs = append(errs, field.Invalid(at.Child("maxSurge"), rolling.MaxSurge,
			"may not be set when maxUnavailable is non-zero"))
	case !unavailable && !surge:
		errs = append(errs, field.Required(at.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	}
	return errs
}

// validateStatefulSet requires what the Kubernetes API reference requires, StatefulSetSpec v1 apps.
func validateStatefulSet(s, old *appsv1.StatefulSet) field.ErrorList {
	at, spec := field.NewPath("spec"), &s.Spec
	errs := validateSelected(spec.Selector, &spec.Template, at)
	errs = append(errs, validateLasting(withClaims(spec), at.Child("template"))...)
	errs = append(errs, notNegative(at.Child("replicas"), spec.Replicas)...)
	errs = append(errs, notNegative(at.Child("minReadySeconds"), &spec.MinReadySeconds)...)
	if p := spec.PodManagementPolicy; p != appsv1.OrderedReadyPodManagement && p != appsv1.ParallelPodManagement {
		errs = append(errs, field.Invalid(at.Child("podManagementPolicy"), p, "must be OrderedReady or Parallel"))
	}
	errs = append(errs, validateStatefulStrategy(&spec.UpdateStrategy, at.Child("updateStrategy"))...)
	if policy := spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		path := at.Child("persistentVolumeClaimRetentionPolicy")
		for name, value := range ordered(map[string]appsv1.PersistentVolumeClaimRetentionPolicyType{
			"whenDeleted": policy.WhenDeleted, "whenScaled": policy.WhenScaled,
		}) {
			errs = append(errs,
				supported(path.Child(name), value, appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
					appsv1.DeletePersistentVolumeClaimRetentionPolicyType)...)
		}
	}
	for i := range spec.VolumeClaimTemplates {
		errs = append(errs, validateClaimSpec(&spec.VolumeClaimTemplates[i].Spec,
			at.Child("volumeClaimTemplates").Index(i).Child("spec"))...)
	}
	if spec.Ordinals != nil {
		errs = append(errs, notNegative(at.Child("ordinals.start"), &spec.Ordinals.Start)...)
	}
	if name := spec.ServiceName; name != "" {
		errs = append(errs, invalid(at.Child("serviceName"), name, labelName(name, false))...)
	}
	if old == nil {
		return errs
	}
	for _, f := range []struct {
		name     string
		now, was any
	}{
		{"podManagementPolicy", spec.PodManagementPolicy, old.Spec.PodManagementPolicy},
		{"selector", spec.Selector, old.Spec.Selector},
		{"serviceName", spec.ServiceName, old.Spec.ServiceName},
		{"volumeClaimTemplates", spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates},
	} {
		if !equality.Semantic.DeepEqual(f.now, f.was) {
			errs = append(errs, immutable(at.Child(f.name), f.now))
		}
	}
	return errs
}

// validateStatefulStrategy requires what a strategy has only if it is to roll.
func validateStatefulStrategy(strategy *appsv1.StatefulSetUpdateStrategy, at *field.Path) field.ErrorList {
	rolling := strategy.RollingUpdate
	switch strategy.Type {
	case appsv1.RollingUpdateStatefulSetStrategyType:
	case appsv1.OnDeleteStatefulSetStrategyType:
		if rolling != nil {
			return field.ErrorList{field.Invalid(at.Child("rollingUpdate"), rolling,
				"only allowed for updateStrategy 'RollingUpdate'")}
		}
	default:
		return field.ErrorList{field.Invalid(at, strategy.Type, "must be RollingUpdate or OnDelete")}
	}
	if rolling == nil {
		return nil
	}
	at = at.Child("rollingUpdate")
	errs := append(notNegative(at.Child("partition"), rolling.Partition),
		validateShare(rolling.MaxUnavailable, at.Child("maxUnavailable"))...)
	if rolling.MaxUnavailable != nil && isZero(rolling.MaxUnavailable) {
		errs = append(errs, field.Invalid(at.Child("maxUnavailable"), rolling.MaxUnavailable, "cannot be 0"))
	}
	return errs
}

// withClaims returns the template as the controller completes it: it names the host of a pod, and each claim is a
// volume, which takes the place of one of the same name.
func withClaims(spec *appsv1.StatefulSetSpec) *corev1.PodTemplateSpec {
	claimed := func(v corev1.Volume) bool {
		return slices.ContainsFunc(spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool {
			return c.Name == v.Name
		})
	}
	template := spec.Template
	template.Spec.Hostname, template.Spec.Subdomain = "", ""
	template.Spec.Volumes = slices.DeleteFunc(slices.Clone(template.Spec.Volumes), claimed)
	for i, claim := range spec.VolumeClaimTemplates {
		if slices.ContainsFunc(spec.VolumeClaimTemplates[i+1:], func(c corev1.PersistentVolumeClaim) bool {
			return c.Name == claim.Name
		}) {
			continue
		}
		source := corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}
		template.Spec.Volumes = append(template.Spec.Volumes,
			corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &source}})
	}
	return &template
}

// validatePodTemplate validates a template that is an object.
func validatePodTemplate(t, _ *corev1.PodTemplate) field.ErrorList {
	return validateTemplate(&t.Template, field.NewPath("template"))
}

// validateReplicationController requires what the Kubernetes API reference requires, ReplicationControllerSpec v1 core.
func validateReplicationController(r, _ *corev1.ReplicationController) field.ErrorList {
	at, spec := field.NewPath("spec"), &r.Spec
	errs := notNegative(at.Child("replicas"), spec.Replicas)
	errs = append(errs, notNegative(at.Child("minReadySeconds"), &spec.MinReadySeconds)...)
	if len(spec.Selector) == 0 {
		errs = append(errs, field.Required(at.Child("selector"), ""))
	}
	if spec.Template == nil {
		return append(errs, field.Required(at.Child("template"), ""))
	}
	if len(spec.Selector) > 0 && !labels.SelectorFromSet(spec.Selector).Matches(labels.Set(spec.Template.Labels)) {
		errs = append(errs, notSelected(spec.Template, at))
	}
	return append(errs, validateLasting(spec.Template, at.Child("template"))...)
}
