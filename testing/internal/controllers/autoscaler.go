package controllers

import (
	"fmt"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// tolerance is how far a metric may be from its target, and period the time between two steps, see "Horizontal
	// Pod Autoscaling: Algorithm details" in the Kubernetes documentation.
	tolerance = 0.1
	period    = 15 * time.Second
	// stabilization is how long after a change the replicas are not reduced, unless the behavior says another time.
	stabilization = 5 * time.Minute
)

// autoscalers scales Deployments, ReplicaSets and StatefulSets. See "Horizontal Pod Autoscaling" in the Kubernetes
// documentation. Here the stabilization window begins with the last change of scale, and policies of the behavior are
// not honored.
func autoscalers(options Options) *controller {
	metric := options.Metric
	if metric == nil {
		metric = func(*autoscalingv2.HorizontalPodAutoscaler, autoscalingv2.MetricSpec) (apiresource.Quantity, bool) {
			return apiresource.Quantity{}, false
		}
	}
	return &controller{
		name: "kube-controller-manager", kinds: []schema.GroupKind{autoscalerKind},
		decide: func(v *view, k key, obj client.Object, now time.Time) decision {
			a := obj.(*autoscalingv2.HorizontalPodAutoscaler)
			values := make([]value, len(a.Spec.Metrics))
			for i, spec := range a.Spec.Metrics {
				values[i].quantity, values[i].ok = metric(a, spec)
			}
			return decideAutoscaler(a, v.find(targetOf(k, a)), values, now)
		},
		concerns: func(v *view, k key, _ client.Object) []key {
			return slices.DeleteFunc(v.keys(autoscalerKind, k.namespace), func(at key) bool {
				a, ok := v.find(at).(*autoscalingv2.HorizontalPodAutoscaler)
				return !ok || targetOf(at, a) != k
			})
		},
	}
}

// value is what a metric is; ok is false if it is not known.
type value struct {
	quantity apiresource.Quantity
	ok       bool
}

func targetOf(k key, a *autoscalingv2.HorizontalPodAutoscaler) key {
	ref := a.Spec.ScaleTargetRef
	return key{schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), k.namespace, ref.Name}
}

// decideAutoscaler scales the target and sets the status, unless it has done so within the last period, see the
// Kubernetes API reference, HorizontalPodAutoscalerStatus v2 autoscaling.
func decideAutoscaler(
	a *autoscalingv2.HorizontalPodAutoscaler, target client.Object, values []value, now time.Time,
) decision {
	if last := a.Status.LastScaleTime; last != nil && now.Before(last.Add(period)) {
		return decision{next: last.Add(period)}
	}
	var d decision
	next := a.DeepCopy()
	s := &next.Status
	s.ObservedGeneration = &next.Generation
	set := func(kind autoscalingv2.HorizontalPodAutoscalerConditionType, is bool, reason, message string) {
		setAutoscalerCondition(s, kind, truth(is), reason, message, now)
	}
	spec, current, ok := replicasIn(target)
	if !ok {
		set(autoscalingv2.AbleToScale, false, "FailedGetScale",
			"the HPA controller was unable to get the target's current scale: "+a.Spec.ScaleTargetRef.Name+" not found")
		return decision{writes: changed(updateStatus, next, a)}
	}
	set(autoscalingv2.AbleToScale, true, "SucceededGetScale",
		"the HPA controller was able to get the target's current scale")
	s.CurrentReplicas = current
	var wanted int32
	wanted, s.CurrentMetrics = highest(a.Spec.Metrics, values, spec)
	known := len(s.CurrentMetrics) > 0
	switch {
	case spec == 0:
		set(autoscalingv2.ScalingActive, false, "ScalingDisabled",
			"scaling is disabled since the replica count of the target is zero")
		s.DesiredReplicas = 0
		return decision{writes: changed(updateStatus, next, a)}
	case !known:
		set(autoscalingv2.ScalingActive, false, "FailedGetResourceMetric",
			"the HPA was unable to compute the replica count")
		wanted = spec
	default:
		set(autoscalingv2.ScalingActive, true, "ValidMetricFound",
			"the HPA was able to successfully calculate a replica count")
	}
	wanted = bounded(a, wanted, known, set)
	if at := settled(a, now); wanted < spec && known && now.Before(at) {
		set(autoscalingv2.AbleToScale, true, "ScaleDownStabilized",
			"recent recommendations were higher than current one, applying the highest recent recommendation")
		d.by(at)
		wanted = spec
	}
	if s.DesiredReplicas = wanted; wanted != spec {
		set(autoscalingv2.AbleToScale, true, "SucceededRescale",
			fmt.Sprintf("the HPA controller was able to update the target scale to %d", wanted))
		s.LastScaleTime = new(metav1.NewTime(now))
		d.add(write{verb: scale, object: target, replicas: wanted})
		d.by(now.Add(period))
	}
	d.add(changed(updateStatus, next, a)...)
	return d
}

// highest returns the largest number of replicas that a metric with a value asks for, and the status of these metrics.
func highest(metrics []autoscalingv2.MetricSpec, values []value, replicas int32) (
	wanted int32, measured []autoscalingv2.MetricStatus,
) {
	for i, metric := range metrics {
		if i < len(values) && values[i].ok {
			n, status := proposal(metric, values[i].quantity, replicas)
			wanted, measured = max(wanted, n), append(measured, status)
		}
	}
	return wanted, measured
}

// replicasIn returns the replicas that a target asks for and has; ok is false for one that is not known.
func replicasIn(target client.Object) (spec, status int32, ok bool) {
	switch t := target.(type) {
	case *appsv1.Deployment:
		return replicasOf(t.Spec.Replicas), t.Status.Replicas, true
	case *appsv1.ReplicaSet:
		return replicasOf(t.Spec.Replicas), t.Status.Replicas, true
	case *appsv1.StatefulSet:
		return replicasOf(t.Spec.Replicas), t.Status.Replicas, true
	}
	return 0, 0, false
}

// proposal returns the replicas that a metric asks for: the current ones by the ratio of the metric to its target.
func proposal(
	m autoscalingv2.MetricSpec, is apiresource.Quantity, replicas int32,
) (wanted int32, status autoscalingv2.MetricStatus) {
	var target autoscalingv2.MetricTarget
	current := autoscalingv2.MetricValueStatus{}
	status.Type = m.Type
	switch {
	case m.Resource != nil:
		target = m.Resource.Target
	case m.ContainerResource != nil:
		target = m.ContainerResource.Target
	case m.Pods != nil:
		target = m.Pods.Target
	case m.Object != nil:
		target = m.Object.Target
	case m.External != nil:
		target = m.External.Target
	}
	ratio := 1.0
	switch {
	case target.AverageUtilization != nil:
		current.AverageUtilization = ptr.To(int32(is.Value()))
		ratio = is.AsApproximateFloat64() / float64(*target.AverageUtilization)
	case target.AverageValue != nil:
		current.AverageValue = &is
		ratio = is.AsApproximateFloat64() / target.AverageValue.AsApproximateFloat64()
	case target.Value != nil:
		current.Value = &is
		ratio = is.AsApproximateFloat64() / target.Value.AsApproximateFloat64()
	}
	switch {
	case m.Resource != nil:
		status.Resource = &autoscalingv2.ResourceMetricStatus{Name: m.Resource.Name, Current: current}
	case m.ContainerResource != nil:
		status.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{
			Name: m.ContainerResource.Name, Container: m.ContainerResource.Container, Current: current,
		}
	case m.Pods != nil:
		status.Pods = &autoscalingv2.PodsMetricStatus{Metric: m.Pods.Metric, Current: current}
	case m.Object != nil:
		status.Object = &autoscalingv2.ObjectMetricStatus{
			Metric: m.Object.Metric, DescribedObject: m.Object.DescribedObject, Current: current,
		}
	case m.External != nil:
		status.External = &autoscalingv2.ExternalMetricStatus{Metric: m.External.Metric, Current: current}
	}
	if math.Abs(ratio-1) <= tolerance {
		return replicas, status
	}
	return int32(min(math.Ceil(ratio*float64(replicas)), math.MaxInt32)), status
}

// bounded returns replicas within the bounds of an autoscaler.
func bounded(
	a *autoscalingv2.HorizontalPodAutoscaler, wanted int32, known bool,
	set func(autoscalingv2.HorizontalPodAutoscalerConditionType, bool, string, string),
) int32 {
	minimum := ptr.Deref(a.Spec.MinReplicas, 1)
	switch {
	case wanted > a.Spec.MaxReplicas:
		set(autoscalingv2.ScalingLimited, true, "TooManyReplicas",
			"the desired replica count is more than the maximum replica count")
		return a.Spec.MaxReplicas
	case wanted < minimum:
		set(autoscalingv2.ScalingLimited, true, "TooFewReplicas",
			"the desired replica count is less than the minimum replica count")
		return minimum
	case known:
		set(autoscalingv2.ScalingLimited, false, "DesiredWithinRange",
			"the desired count is within the acceptable range")
	}
	return wanted
}

// settled is when replicas may be reduced.
func settled(a *autoscalingv2.HorizontalPodAutoscaler, now time.Time) time.Time {
	if a.Status.LastScaleTime == nil {
		return now
	}
	window := stabilization
	if b := a.Spec.Behavior; b != nil && b.ScaleDown != nil && b.ScaleDown.StabilizationWindowSeconds != nil {
		window = time.Duration(*b.ScaleDown.StabilizationWindowSeconds) * time.Second
	}
	return a.Status.LastScaleTime.Add(window)
}

func setAutoscalerCondition(
	s *autoscalingv2.HorizontalPodAutoscalerStatus, kind autoscalingv2.HorizontalPodAutoscalerConditionType,
	status corev1.ConditionStatus, reason, message string, now time.Time,
) {
	c := autoscalingv2.HorizontalPodAutoscalerCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	}
	i := slices.IndexFunc(s.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == kind
	})
	if i < 0 {
		s.Conditions = append(s.Conditions, c)
		return
	}
	if was := s.Conditions[i]; was.Status == status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	s.Conditions[i] = c
}
