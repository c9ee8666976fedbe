package feature

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// gauge returns the metric of features. It is registered when a feature needs it first.
var gauge = sync.OnceValue(func() *prometheus.GaugeVec {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "espalier_feature_condition",
		Help: "Since when a feature of a resource has been in its phase, in Unix seconds. A feature has one series.",
	}, []string{"kind", "namespace", "name", "feature", "status", "reason"})
	var known prometheus.AlreadyRegisteredError
	if err := metrics.Registry.Register(vec); errors.As(err, &known) {
		if registered, ok := known.ExistingCollector.(*prometheus.GaugeVec); ok {
			return registered
		}
	}
	return vec
})

// series is the series of one feature of one resource.
type series struct {
	mu     sync.Mutex
	labels prometheus.Labels
	closed bool
}

// set replaces the series if the condition has changed.
func (s *series) set(
	kind string, resource client.Object, feature string, condition metav1.Condition, since metav1.Time,
) {
	labels := prometheus.Labels{
		"kind": kind, "namespace": resource.GetNamespace(), "name": resource.GetName(), "feature": feature,
		"status": string(condition.Status), "reason": condition.Reason,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.labels != nil && (s.labels["status"] != labels["status"] || s.labels["reason"] != labels["reason"]) {
		gauge().Delete(s.labels)
	}
	s.labels = labels
	gauge().With(labels).Set(float64(since.Unix()))
}

// Close deletes the series. The resource is gone.
func (s *series) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed = true; s.labels != nil {
		gauge().Delete(s.labels)
	}
	return nil
}
