package feature

import (
	"context"
	"time"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/reconcilers"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is the fact how a feature is after a request, for observers, see [reconcilers.Observer]. The node is that of
// the feature.
type Phase struct {
	// Feature is the name of the feature, followed by the keys of the items that it runs for, each in brackets.
	Feature string
	// Status and Reason are those of the condition of the feature.
	Status metav1.ConditionStatus
	Reason apis.State
	// Phase is where the feature is in its life, since Since.
	Phase apis.FeaturePhase
	Since time.Time
	// Removed is true if the item that the feature ran for is gone, so that nothing more will be told of the feature.
	Removed bool
}

// notePhase tells observers how the feature is.
func notePhase(ctx context.Context, d decision, removed bool) {
	if !reconcilers.IsObserved(ctx) {
		return
	}
	reconcilers.Note(ctx, Phase{
		Feature: d.record.Name, Status: d.status, Reason: d.reason,
		Phase: d.record.Phase, Since: d.record.Since.Time, Removed: removed,
	})
}
