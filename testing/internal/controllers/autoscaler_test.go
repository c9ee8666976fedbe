package controllers_test

import (
	"sync/atomic"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
)

// autoscaler scales the Deployment of its name by the usage of CPUs.
func autoscaler(name string, minimum, maximum int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: meta(name), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: "apps/v1", Kind: "Deployment", Name: name,
			},
			MinReplicas: &minimum, MaxReplicas: maximum,
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
}

// autoscalerConditions are the conditions of an autoscaler by their types.
func autoscalerConditions(
	a *autoscalingv2.HorizontalPodAutoscaler,
) map[autoscalingv2.HorizontalPodAutoscalerConditionType]string {
	got := map[autoscalingv2.HorizontalPodAutoscalerConditionType]string{}
	for _, condition := range a.Status.Conditions {
		got[condition.Type] = string(condition.Status) + " " + condition.Reason
	}
	return got
}

// TestAutoscalerOfNothing scales a Deployment to zero by hand: its autoscaler leaves it alone until it is scaled again.
func TestAutoscalerOfNothing(t *testing.T) {
	run(t, controllers.Options{}, func(c cluster) {
		d, a := deployment("a", 2), autoscaler("a", 2, 5)
		c.create(d)
		c.create(a)
		for _, step := range []struct {
			to, want int32
			active   string
		}{
			{0, 0, "False ScalingDisabled"},
			{1, 2, "False FailedGetResourceMetric"},
		} {
			body := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: step.to}}
			body.ObjectMeta = meta("a")
			c.must(c.SubResource("scale").Update(c.ctx, d, client.WithSubResourceBody(body)))
			time.Sleep(10 * time.Minute)
			c.get(d)
			c.get(a)
			got := autoscalerConditions(a)
			if *d.Spec.Replicas != step.want || a.Status.DesiredReplicas != step.want ||
				got[autoscalingv2.ScalingActive] != step.active {
				c.Errorf("scaled to %d: %d replicas, %d desired, the conditions are %v, want %d and %s", step.to,
					*d.Spec.Replicas, a.Status.DesiredReplicas, got, step.want, step.active)
			}
			c.idle()
		}
	})
}

// TestAutoscalerHasAPeriod changes the replicas each second. The autoscaler sets them each 15 seconds.
func TestAutoscalerHasAPeriod(t *testing.T) {
	run(t, controllers.Options{}, func(c cluster) {
		d, a := deployment("a", 1), autoscaler("a", 3, 5)
		c.create(d)
		c.create(a)
		scaled := 0
		for range 60 {
			time.Sleep(time.Second)
			c.get(d)
			if *d.Spec.Replicas == 3 {
				scaled++
				d.Spec.Replicas = ptr.To(int32(1))
				c.must(client.IgnoreNotFound(c.Update(c.ctx, d)))
			}
		}
		if scaled < 4 || scaled > 5 { // The time of the last one has no fractions of a second.
			c.Errorf("the Deployment was scaled %d times in a minute, want 4 or 5", scaled)
		}
		time.Sleep(10 * time.Minute)
		c.get(d)
		if *d.Spec.Replicas != 3 {
			c.Errorf("there are %d replicas in the end, want 3", *d.Spec.Replicas)
		}
		c.idle()
	})
}

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
		a := autoscaler("a", 1, 5)
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
			got := autoscalerConditions(a)
			if got[autoscalingv2.ScalingActive] != step.active || got[autoscalingv2.ScalingLimited] != step.limited {
				c.Errorf("load %d: the conditions are %v", step.load, got)
			}
			c.idle()
		}
	})
}
