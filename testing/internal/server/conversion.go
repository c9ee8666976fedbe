package server

import (
	"encoding/json"
	"fmt"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/espalier-dev/espalier/testing/internal/registry"
)

// addConversions adds those between the versions of a kind that have different fields.
func addConversions(s *runtime.Scheme) {
	addConversion(s, fromAutoscalerV1)
	addConversion(s, toAutoscalerV1)
	type (
		listV1 = autoscalingv1.HorizontalPodAutoscalerList
		listV2 = autoscalingv2.HorizontalPodAutoscalerList
	)
	addConversion(s, func(in *listV1, out *listV2) error {
		out.ListMeta = in.ListMeta
		return convertItems(in.Items, &out.Items, fromAutoscalerV1)
	})
	addConversion(s, func(in *listV2, out *listV1) error {
		out.ListMeta = in.ListMeta
		return convertItems(in.Items, &out.Items, toAutoscalerV1)
	})
	addOldVersions(s)
	addConversion(s, fromEvent)
	addConversion(s, toEvent)
	addConversion(s, func(in *eventsv1.EventList, out *corev1.EventList) error {
		out.ListMeta = in.ListMeta
		return convertItems(in.Items, &out.Items, fromEvent)
	})
	addConversion(s, func(in *corev1.EventList, out *eventsv1.EventList) error {
		out.ListMeta = in.ListMeta
		return convertItems(in.Items, &out.Items, toEvent)
	})
}

// addOldVersions adds conversions between the versions of kinds that are not served any more, and the newest ones, by
// the names of the fields. Managed fields may name them.
func addOldVersions(s *runtime.Scheme) {
	for _, k := range kinds() {
		for _, version := range s.VersionsForGroupKind(k.Kind) {
			old, err := s.New(version.WithKind(k.Kind.Kind))
			if err != nil || version.Version == runtime.APIVersionInternal || k.Kind.Group == autoscalingv1.GroupName ||
				slices.ContainsFunc(k.versions, func(v registry.Version) bool { return v.Name == version.Version }) {
				continue
			}
			for _, pair := range [][2]runtime.Object{{old, k.object()}, {k.object(), old}} {
				utilruntime.Must(s.AddConversionFunc(pair[0], pair[1], convertFields))
			}
		}
	}
}

func convertFields(in, out any, _ conversion.Scope) error {
	encoded, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return json.Unmarshal(encoded, out)
}

func addConversion[In, Out any](s *runtime.Scheme, convert func(in *In, out *Out) error) {
	utilruntime.Must(s.AddConversionFunc((*In)(nil), (*Out)(nil), func(in, out any, _ conversion.Scope) error {
		return convert(in.(*In), out.(*Out))
	}))
}

func convertItems[In, Out any](in []In, out *[]Out, convert func(in *In, out *Out) error) error {
	*out = make([]Out, len(in))
	for i := range in {
		if err := convert(&in[i], &(*out)[i]); err != nil {
			return err
		}
	}
	return nil
}

// fromEvent converts an event by the names of its fields, see the Kubernetes API reference, Event v1 events.k8s.io.
func fromEvent(in *eventsv1.Event, out *corev1.Event) error {
	*out = corev1.Event{
		ObjectMeta: in.ObjectMeta, InvolvedObject: in.Regarding, Related: in.Related,
		Reason: in.Reason, Message: in.Note, Type: in.Type, Action: in.Action,
		Source: in.DeprecatedSource, Count: in.DeprecatedCount,
		FirstTimestamp: in.DeprecatedFirstTimestamp, LastTimestamp: in.DeprecatedLastTimestamp,
		EventTime: in.EventTime, ReportingController: in.ReportingController, ReportingInstance: in.ReportingInstance,
	}
	if in.Series != nil {
		out.Series = &corev1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
	return nil
}

func toEvent(in *corev1.Event, out *eventsv1.Event) error {
	*out = eventsv1.Event{
		ObjectMeta: in.ObjectMeta, Regarding: in.InvolvedObject, Related: in.Related,
		Reason: in.Reason, Note: in.Message, Type: in.Type, Action: in.Action,
		DeprecatedSource: in.Source, DeprecatedCount: in.Count,
		DeprecatedFirstTimestamp: in.FirstTimestamp, DeprecatedLastTimestamp: in.LastTimestamp,
		EventTime: in.EventTime, ReportingController: in.ReportingController, ReportingInstance: in.ReportingInstance,
	}
	if in.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
	return nil
}

// The annotations in which version v1 of an autoscaler keeps what it has no fields for, see the Kubernetes API
// reference, HorizontalPodAutoscaler v1 autoscaling.
const (
	metricsAnnotation    = "autoscaling.alpha.kubernetes.io/metrics"
	conditionsAnnotation = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation   = "autoscaling.alpha.kubernetes.io/behavior"
	currentAnnotation    = "autoscaling.alpha.kubernetes.io/current-metrics"
)

// fromAutoscalerV1 converts an autoscaler of version v1. The target of the CPU is the first metric.
func fromAutoscalerV1(in *autoscalingv1.HorizontalPodAutoscaler, out *autoscalingv2.HorizontalPodAutoscaler) error {
	*out = autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: *in.ObjectMeta.DeepCopy(),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas, MaxReplicas: in.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration, LastScaleTime: in.Status.LastScaleTime,
			CurrentReplicas: in.Status.CurrentReplicas, DesiredReplicas: in.Status.DesiredReplicas,
		},
	}
	for name, target := range map[string]any{
		metricsAnnotation: &out.Spec.Metrics, behaviorAnnotation: &out.Spec.Behavior,
		conditionsAnnotation: &out.Status.Conditions, currentAnnotation: &out.Status.CurrentMetrics,
	} {
		text, ok := out.Annotations[name]
		if !ok {
			continue
		}
		delete(out.Annotations, name)
		if err := json.Unmarshal([]byte(text), target); err != nil {
			return fmt.Errorf("annotation %s: %w", name, err)
		}
	}
	if percentage := in.Spec.TargetCPUUtilizationPercentage; percentage != nil {
		out.Spec.Metrics = slices.Insert(out.Spec.Metrics, 0, autoscalingv2.MetricSpec{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
				Type: autoscalingv2.UtilizationMetricType, AverageUtilization: percentage,
			}},
		})
	}
	return nil
}

// toAutoscalerV1 is the reverse of [fromAutoscalerV1].
func toAutoscalerV1(in *autoscalingv2.HorizontalPodAutoscaler, out *autoscalingv1.HorizontalPodAutoscaler) error {
	*out = autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: *in.ObjectMeta.DeepCopy(),
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas, MaxReplicas: in.Spec.MaxReplicas,
		},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration, LastScaleTime: in.Status.LastScaleTime,
			CurrentReplicas: in.Status.CurrentReplicas, DesiredReplicas: in.Status.DesiredReplicas,
		},
	}
	metrics := slices.Clone(in.Spec.Metrics)
	if i := slices.IndexFunc(metrics, isUtilizationOfCPU); i >= 0 {
		out.Spec.TargetCPUUtilizationPercentage = metrics[i].Resource.Target.AverageUtilization
		metrics = slices.Delete(metrics, i, i+1)
	}
	for _, more := range []struct {
		name  string
		value any
		empty bool
	}{
		{metricsAnnotation, metrics, len(metrics) == 0},
		{behaviorAnnotation, in.Spec.Behavior, in.Spec.Behavior == nil},
		{conditionsAnnotation, in.Status.Conditions, len(in.Status.Conditions) == 0},
		{currentAnnotation, in.Status.CurrentMetrics, len(in.Status.CurrentMetrics) == 0},
	} {
		if more.empty {
			continue
		}
		text, err := json.Marshal(more.value)
		if err != nil {
			return fmt.Errorf("annotation %s: %w", more.name, err)
		}
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[more.name] = string(text)
	}
	return nil
}

func isUtilizationOfCPU(m autoscalingv2.MetricSpec) bool {
	return m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil &&
		m.Resource.Name == corev1.ResourceCPU && m.Resource.Target.AverageUtilization != nil
}
