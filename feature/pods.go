package feature

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/health"
	"github.com/espalier-dev/espalier/reconcilers"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lookAtPods returns the reports with what the pods of workloads say that are not healthy. The pods are tracked, so
// their events bring the resource back. If they cannot be read, the health is what the workload says.
func (f *Feature[T]) lookAtPods(
	ctx context.Context, reports []reconcilers.ObservedObject, supervision reconcilers.Supervision,
) ([]reconcilers.ObservedObject, error) {
	if !f.Pods || supervision != reconcilers.Maintain {
		return reports, nil
	}
	rules := rules{health: f.Health, suspension: f.Suspension}
	reports = slices.Clone(reports)
	var failures []error
	for i, report := range reports {
		if report.Object == nil || report.Err != nil || report.Unchecked {
			continue
		}
		h := rules.healthOf(report, supervision)
		selector, ok := health.PodSelector(report.Object)
		if !ok || health.Healthy(h.State) {
			continue
		}
		config, err := reconcilers.RetrieveConfig(ctx)
		if err != nil {
			return reports, err
		}
		pods := &corev1.PodList{}
		matching := client.MatchingLabelsSelector{Selector: selector}
		if err := config.TrackAndList(ctx, pods, client.InNamespace(report.Namespace), matching); err != nil {
			name := objectName(report.Kind.Kind, report.Namespace, report.Name)
			err = fmt.Errorf("unable to list the pods of %s: %w", name, err)
			failures = append(failures, reconcilers.Failed(ctx, report.Object, err))
			continue
		}
		h = health.WithPods(report.Object, h, pods.Items)
		reports[i].Health = &h
	}
	return reports, errors.Join(failures...)
}
