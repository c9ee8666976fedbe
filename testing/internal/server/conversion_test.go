package server_test

import (
	"encoding/json"
	"net/http"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

// converter converts widgets by changing their apiVersion, and counts the reviews.
func converter(reviews *int) func(string) http.Handler {
	return func(string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			*reviews++
			var review apiextensionsv1.ConversionReview
			_ = json.NewDecoder(r.Body).Decode(&review)
			review.Response = &apiextensionsv1.ConversionResponse{
				UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess},
			}
			for _, raw := range review.Request.Objects {
				u := &unstructured.Unstructured{}
				_ = u.UnmarshalJSON(raw.Raw)
				u.SetAPIVersion(review.Request.DesiredAPIVersion)
				converted, _ := u.MarshalJSON()
				review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Raw: converted})
			}
			review.Request = nil
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(review)
		})
	}
}

func TestConversionWebhook(t *testing.T) {
	definition := widgets()
	second := *definition.Spec.Versions[0].DeepCopy()
	second.Name, second.Storage = "v2", false
	definition.Spec.Versions = append(definition.Spec.Versions, second)
	definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				CABundle: authority(t),
				Service:  &apiextensionsv1.ServiceReference{Namespace: "system", Name: "hooks", Path: ptr.To("/convert")},
			},
		},
	}
	reviews := 0
	options := server.Options{
		Webhooks: converter(&reviews), Definitions: []*apiextensionsv1.CustomResourceDefinition{definition},
	}
	run(t, options, func(c cluster) {
		obj := widget("a", 3)
		obj.SetAPIVersion("example.com/v2")
		c.create(obj)
		if obj.GetAPIVersion() != "example.com/v2" || reviews == 0 {
			c.Errorf("the object is %v after %d reviews", obj, reviews)
		}
		stored := widget("a", 0)
		c.get(stored)
		if size, _, _ := unstructured.NestedInt64(stored.Object, "spec", "size"); size != 3 {
			c.Errorf("the object is %v", stored)
		}
	})
}

// TestVersions reads objects of built-in kinds in another version than they were created in.
func TestVersions(t *testing.T) {
	run(t, server.Options{}, func(c cluster) {
		first := &autoscalingv1.HorizontalPodAutoscaler{
			ObjectMeta: meta("a"),
			Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{Kind: "Deployment", Name: "a", APIVersion: "apps/v1"},
				MaxReplicas:    3, TargetCPUUtilizationPercentage: ptr.To[int32](70),
			},
		}
		c.create(first)
		second := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta("a")}
		c.get(second)
		if len(second.Spec.Metrics) != 1 || *second.Spec.Metrics[0].Resource.Target.AverageUtilization != 70 {
			c.Errorf("the metrics are %v", second.Spec.Metrics)
		}
		second.Spec.Metrics = append(second.Spec.Metrics, autoscalingv2.MetricSpec{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceMemory, Target: autoscalingv2.MetricTarget{
				Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](50),
			}},
		})
		c.must(c.Update(c.ctx, second))
		list := &autoscalingv1.HorizontalPodAutoscalerList{}
		c.must(c.List(c.ctx, list))
		first = &list.Items[0]
		first.Spec.MaxReplicas = 5
		c.must(c.Update(c.ctx, first))
		c.get(second)
		if len(second.Spec.Metrics) != 2 || second.Spec.MaxReplicas != 5 {
			c.Errorf("after an update in the other version: %v", second.Spec)
		}
		event := &eventsv1.Event{
			ObjectMeta: meta("a"), EventTime: metav1.NowMicro(), Note: "it happened", Type: corev1.EventTypeNormal,
			ReportingController: "example.com/test", ReportingInstance: "test", Action: "Test", Reason: "Test",
		}
		c.create(event)
		events := &corev1.EventList{}
		c.must(c.List(c.ctx, events, client.MatchingFields{"reason": "Test"}))
		if len(events.Items) != 1 || events.Items[0].Message != "it happened" {
			c.Errorf("the events are %v", events.Items)
		}
	})
}
