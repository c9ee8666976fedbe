package controllers_test

import (
	"sync/atomic"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
)

// TestAutoscaler scales a Deployment by the load that the test sets.
func TestAutoscaler(t *testing.T) {
	var load atomic.Int64
	metric := func(a *autoscalingv2.HorizontalPodAutoscaler, _ autoscalingv2.MetricSpec) (resource.Quantity, bool) {
		each := load.Load() / int64(max(1, a.Status.CurrentReplicas))
		return *resource.NewQuantity(each, resource.DecimalSI), load.Load() > 0
	}
	run(t, controllers.Options{Metric: metric}, func(c cluster) {
		d := deployment("a", 2)
		c.create(d)
		a := &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: meta("a"), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
					APIVersion: "apps/v1", Kind: "Deployment", Name: "a",
				},
				MinReplicas: ptr.To(int32(1)), MaxReplicas: 5,
				Metrics: []autoscalingv2.MetricSpec{{
					Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
						Name: corev1.ResourceCPU,
						Target: autoscalingv2.MetricTarget{
							Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To(int32(50)),
						},
					},
				}},
			},
		}
		c.create(a)
		for _, step := range []struct {
			load            int64
			replicas        int
			active, limited string
		}{
			{0, 2, "False FailedGetResourceMetric", ""},
			{200, 4, "True ValidMetricFound", "False DesiredWithinRange"},
			{210, 4, "True ValidMetricFound", "False DesiredWithinRange"},
			{1000, 5, "True ValidMetricFound", "True TooManyReplicas"},
			{100, 2, "True ValidMetricFound", "False DesiredWithinRange"},
		} {
			load.Store(step.load)
			c.Refresh()
			time.Sleep(10 * time.Minute)
			c.get(d)
			c.get(a)
			if *d.Spec.Replicas != int32(step.replicas) || a.Status.DesiredReplicas != int32(step.replicas) ||
				a.Status.CurrentReplicas != int32(step.replicas) || d.Status.ReadyReplicas != int32(step.replicas) {
				c.Errorf("load %d: %d replicas, status %+v", step.load, *d.Spec.Replicas, a.Status)
			}
			got := map[autoscalingv2.HorizontalPodAutoscalerConditionType]string{}
			for _, condition := range a.Status.Conditions {
				got[condition.Type] = string(condition.Status) + " " + condition.Reason
			}
			if got[autoscalingv2.ScalingActive] != step.active || got[autoscalingv2.ScalingLimited] != step.limited {
				c.Errorf("load %d: the conditions are %v", step.load, got)
			}
			c.idle()
		}
	})
}
