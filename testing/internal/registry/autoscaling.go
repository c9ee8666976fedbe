package registry

import (
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
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

// outside reports whether a metric is there without pods.
func outside(m autoscalingv2.MetricSpec) bool {
	return m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
}

// validateAutoscaler requires what the Kubernetes API reference requires, HorizontalPodAutoscalerSpec v2 autoscaling.
func validateAutoscaler(a, _ *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	at, spec := field.NewPath("spec"), &a.Spec
	errs := positive(at.Child("minReplicas"), spec.MinReplicas)
	if spec.MinReplicas != nil && *spec.MinReplicas == 0 && !slices.ContainsFunc(spec.Metrics, outside) {
		errs = append(errs, field.Forbidden(at.Child("metrics"),
			"must specify at least one Object or External metric to support scaling to zero replicas"))
	}
	if spec.MaxReplicas == 0 {
		errs = append(errs, field.Required(at.Child("maxReplicas"), ""))
	} else {
		errs = append(errs, positive(at.Child("maxReplicas"), &spec.MaxReplicas)...)
	}
	if spec.MinReplicas != nil && spec.MaxReplicas < *spec.MinReplicas {
		errs = append(errs, field.Invalid(at.Child("maxReplicas"), spec.MaxReplicas,
			"must be greater than or equal to `minReplicas`"))
	}
	target := at.Child("scaleTargetRef")
	if spec.ScaleTargetRef.Kind == "" {
		errs = append(errs, field.Required(target.Child("kind"), ""))
	}
	if spec.ScaleTargetRef.Name == "" {
		errs = append(errs, field.Required(target.Child("name"), ""))
	}
	return errs
}
