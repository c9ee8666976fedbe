package registry

import (
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// completeAutoscaler sets the defaults of the Kubernetes API reference, HorizontalPodAutoscalerSpec v2 autoscaling, and
// of "Default Behavior" in the documentation.
func completeAutoscaler(a, _ *autoscalingv2.HorizontalPodAutoscaler) {
	setDefault(&a.Spec.MinReplicas, 1)
	if len(a.Spec.Metrics) == 0 {
		a.Spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{
					Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](80),
				},
			},
		}}
	}
	behavior := a.Spec.Behavior
	if behavior == nil {
		return
	}
	setDefault(&behavior.ScaleUp, autoscalingv2.HPAScalingRules{})
	setDefault(&behavior.ScaleUp.StabilizationWindowSeconds, 0)
	completeScaling(behavior.ScaleUp, autoscalingv2.HPAScalingPolicy{
		Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15,
	}, everything)
	setDefault(&behavior.ScaleDown, autoscalingv2.HPAScalingRules{})
	completeScaling(behavior.ScaleDown, everything)
}

// everything allows as many replicas more or less as there are, each 15 seconds.
var everything = autoscalingv2.HPAScalingPolicy{
	Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15,
}

func completeScaling(rules *autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) {
	setDefault(&rules.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if rules.Policies == nil {
		rules.Policies = policies
	}
}

// completeAutoscalerV1 sets the defaults of the Kubernetes API reference, HorizontalPodAutoscalerSpec v1 autoscaling.
func completeAutoscalerV1(a, _ *autoscalingv1.HorizontalPodAutoscaler) {
	setDefault(&a.Spec.MinReplicas, 1)
	setDefault(&a.Spec.TargetCPUUtilizationPercentage, 80)
}

// validateAutoscaler requires what the Kubernetes API reference requires, HorizontalPodAutoscalerSpec v2 autoscaling.
func validateAutoscaler(a, old *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	at, spec := field.NewPath("spec"), &a.Spec
	errs := validateScaled(spec.MinReplicas, spec.MaxReplicas, at)
	target := autoscalingv2.CrossVersionObjectReference{}
	if old != nil {
		target = old.Spec.ScaleTargetRef
	}
	errs = append(errs, validateScaleTarget(spec.ScaleTargetRef, target, at.Child("scaleTargetRef"))...)
	for i := range spec.Metrics {
		errs = append(errs, validateMetric(&spec.Metrics[i], at.Child("metrics").Index(i))...)
	}
	outside := func(m autoscalingv2.MetricSpec) bool {
		return m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	}
	if spec.MinReplicas != nil && *spec.MinReplicas == 0 && !slices.ContainsFunc(spec.Metrics, outside) {
		errs = append(errs, field.Forbidden(at.Child("metrics"),
			"must specify at least one Object or External metric to support scaling to zero replicas"))
	}
	if behavior := spec.Behavior; behavior != nil {
		errs = append(errs, validateScaling(behavior.ScaleUp, at.Child("behavior", "scaleUp"))...)
		errs = append(errs, validateScaling(behavior.ScaleDown, at.Child("behavior", "scaleDown"))...)
	}
	return errs
}

// validateAutoscalerV1 requires what the Kubernetes API reference requires, HorizontalPodAutoscalerSpec v1 autoscaling.
// Its only metric is one of pods, so it does not scale to zero.
func validateAutoscalerV1(a, old *autoscalingv1.HorizontalPodAutoscaler) field.ErrorList {
	at, spec := field.NewPath("spec"), &a.Spec
	errs := validateScaled(spec.MinReplicas, spec.MaxReplicas, at)
	target := autoscalingv1.CrossVersionObjectReference{}
	if old != nil {
		target = old.Spec.ScaleTargetRef
	}
	errs = append(errs, validateScaleTarget(autoscalingv2.CrossVersionObjectReference(spec.ScaleTargetRef),
		autoscalingv2.CrossVersionObjectReference(target), at.Child("scaleTargetRef"))...)
	if spec.MinReplicas != nil && *spec.MinReplicas == 0 {
		errs = append(errs, field.Forbidden(at.Child("metrics"),
			"must specify at least one Object or External metric to support scaling to zero replicas"))
	}
	return append(errs, positive(at.Child("targetCPUUtilizationPercentage"), spec.TargetCPUUtilizationPercentage)...)
}

func validateScaled(minimum *int32, maximum int32, at *field.Path) field.ErrorList {
	errs := notNegative(at.Child("minReplicas"), minimum)
	if maximum == 0 {
		errs = append(errs, field.Required(at.Child("maxReplicas"), ""))
	} else {
		errs = append(errs, positive(at.Child("maxReplicas"), &maximum)...)
	}
	if minimum != nil && maximum < *minimum {
		errs = append(errs, field.Invalid(at.Child("maxReplicas"), maximum,
			"must be greater than or equal to `minReplicas`"))
	}
	return errs
}

// validateScaleTarget requires an API group, except of a ReplicationController. What old has is accepted.
func validateScaleTarget(ref, old autoscalingv2.CrossVersionObjectReference, at *field.Path) field.ErrorList {
	errs := validateReference(ref, at)
	if ref.APIVersion == old.APIVersion && ref.Kind == old.Kind {
		return slices.DeleteFunc(errs,
			func(err *field.Error) bool { return err.Field == at.Child("apiVersion").String() })
	}
	if group, err := schema.ParseGroupVersion(ref.APIVersion); err == nil && group.Group == "" &&
		ref.Kind != "ReplicationController" {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), ref.APIVersion, "apiVersion must specify API group"))
	}
	return errs
}

func validateReference(ref autoscalingv2.CrossVersionObjectReference, at *field.Path) field.ErrorList {
	errs := append(pathSegment(at.Child("kind"), ref.Kind), pathSegment(at.Child("name"), ref.Name)...)
	if _, err := schema.ParseGroupVersion(ref.APIVersion); err != nil {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), ref.APIVersion, err.Error()))
	}
	return errs
}

func validateScaling(rules *autoscalingv2.HPAScalingRules, at *field.Path) field.ErrorList {
	if rules == nil {
		return nil
	}
	errs := between(at.Child("stabilizationWindowSeconds"), rules.StabilizationWindowSeconds, 0, 3600)
	if rules.SelectPolicy != nil {
		errs = append(errs, supported(at.Child("selectPolicy"), *rules.SelectPolicy,
			autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect,
			autoscalingv2.DisabledPolicySelect)...)
	}
	if len(rules.Policies) == 0 {
		errs = append(errs, field.Required(at.Child("policies"), "must specify at least one Policy"))
	}
	for i, policy := range rules.Policies {
		path := at.Child("policies").Index(i)
		errs = append(errs, supported(path.Child("type"), policy.Type, autoscalingv2.PodsScalingPolicy,
			autoscalingv2.PercentScalingPolicy)...)
		errs = append(errs, positive(path.Child("value"), &policy.Value)...)
		errs = append(errs, between(path.Child("periodSeconds"), &policy.PeriodSeconds, 1, 1800)...)
	}
	if rules.Tolerance != nil && rules.Tolerance.Sign() < 0 {
		errs = append(errs, field.Invalid(at.Child("tolerance"), rules.Tolerance.String(),
			"must be greater than or equal to 0"))
	}
	return errs
}

// validateMetric requires the source that the type names, and no other.
func validateMetric(m *autoscalingv2.MetricSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	given := map[autoscalingv2.MetricSourceType]string{}
	if s := m.Object; s != nil {
		given[autoscalingv2.ObjectMetricSourceType] = "object"
		path := at.Child("object")
		errs = append(errs, validateReference(s.DescribedObject, path.Child("describedObject"))...)
		errs = append(errs, validateMetricName(s.Metric, path)...)
		errs = append(errs, validateMetricTarget(s.Target, path, s.Target.Value != nil, true)...)
	}
	if s := m.External; s != nil {
		given[autoscalingv2.ExternalMetricSourceType] = "external"
		path := at.Child("external")
		errs = append(errs, validateMetricName(s.Metric, path)...)
		errs = append(errs, validateMetricTarget(s.Target, path, s.Target.Value != nil, false)...)
	}
	if s := m.Pods; s != nil {
		given[autoscalingv2.PodsMetricSourceType] = "pods"
		errs = append(errs, validateMetricName(s.Metric, at.Child("pods"))...)
		errs = append(errs, validateMetricTarget(s.Target, at.Child("pods"), false, true)...)
	}
	if s := m.Resource; s != nil {
		given[autoscalingv2.ResourceMetricSourceType] = "resource"
		errs = append(errs, required(at.Child("resource", "name"), s.Name)...)
		errs = append(errs, validateMetricTarget(s.Target, at.Child("resource"),
			s.Target.AverageUtilization != nil, false)...)
	}
	if s := m.ContainerResource; s != nil {
		given[autoscalingv2.ContainerResourceMetricSourceType] = "containerResource"
		path := at.Child("containerResource")
		errs = append(errs, requiredLabel(path.Child("container"), s.Container)...)
		errs = append(errs, validateContainerResource(s.Name, path.Child("name"))...)
		errs = append(errs, validateMetricTarget(s.Target, path, s.Target.AverageUtilization != nil, false)...)
	}
	errs = append(errs, oneOf(at.Child("type"), m.Type, autoscalingv2.ObjectMetricSourceType,
		autoscalingv2.ExternalMetricSourceType, autoscalingv2.PodsMetricSourceType,
		autoscalingv2.ResourceMetricSourceType, autoscalingv2.ContainerResourceMetricSourceType)...)
	if given[m.Type] == "" {
		errs = append(errs, field.Required(at, "must populate information for the given metric source"))
	}
	if len(given) > 1 {
		errs = append(errs, field.Forbidden(at, "must populate the given metric source only"))
	}
	return errs
}

func validateMetricName(metric autoscalingv2.MetricIdentifier, at *field.Path) field.ErrorList {
	return pathSegment(at.Child("metric", "name"), metric.Name)
}

// validateMetricTarget requires an average value, or else the other value that the source may have; not both, unless
// the source allows that.
func validateMetricTarget(t autoscalingv2.MetricTarget, at *field.Path, other, both bool) field.ErrorList {
	at = at.Child("target")
	errs := oneOf(at.Child("type"), t.Type, autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType,
		autoscalingv2.AverageValueMetricType)
	for name, value := range ordered(map[string]*resource.Quantity{"value": t.Value, "averageValue": t.AverageValue}) {
		if value != nil && value.Sign() <= 0 {
			errs = append(errs, field.Invalid(at.Child(name), value.String(), "must be positive"))
		}
	}
	errs = append(errs, positive(at.Child("averageUtilization"), t.AverageUtilization)...)
	if t.AverageValue == nil && !other {
		errs = append(errs, field.Required(at, "must set a target"))
	}
	if t.AverageValue != nil && other && !both {
		errs = append(errs, field.Forbidden(at, "may not set two targets"))
	}
	return errs
}
