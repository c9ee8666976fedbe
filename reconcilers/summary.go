package reconcilers

import (
	"context"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/internal/statusfield"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of a summary, besides those that it repeats.
const (
	reasonInitializing = "Initializing"
	reasonReady        = "Ready"
	reasonTerminating  = "Terminating"
)

// reportedConditions returns the types of the conditions that the nodes of a tree set, in the order of the nodes,
// without the summary itself.
func reportedConditions(tree Description, summary string) []string {
	var types []string
	tree.Walk(func(_ string, d Description) {
		for _, conditionType := range d.Conditions {
			if conditionType != summary && !slices.Contains(types, conditionType) {
				types = append(types, conditionType)
			}
		}
	})
	return types
}

// summaryOf sums up the conditions of those types: False like the first that is False, else Unknown like the first that
// is neither True nor False, else True. A type without a condition does not count.
func summaryOf(types []string, conditions []metav1.Condition) metav1.Condition {
	summary := metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonReady}
	for _, conditionType := range types {
		condition := meta.FindStatusCondition(conditions, conditionType)
		if condition == nil || condition.Status == metav1.ConditionTrue {
			continue
		}
		isFalse := condition.Status == metav1.ConditionFalse
		if !isFalse && summary.Status != metav1.ConditionTrue {
			continue
		}
		summary.Status, summary.Reason = metav1.ConditionUnknown, condition.Reason
		summary.Message = conditionType
		if condition.Message != "" {
			summary.Message = fmt.Sprintf("%s: %s", conditionType, condition.Message)
		}
		if isFalse {
			summary.Status = metav1.ConditionFalse
			return summary
		}
	}
	return summary
}

// initializeSummary adds the conditions that the nodes set, and their summary, as far as they are missing.
func (r *ResourceReconciler[T]) initializeSummary(ctx context.Context, resource T) {
	if resource.GetDeletionTimestamp() != nil {
		return
	}
	r.reportedOnce.Do(func() { r.reported = reportedConditions(Describe(r.Reconciler), r.SummaryCondition) })
	conditions := statusfield.Of(resource).GetConditions()
	for _, conditionType := range append([]string{r.SummaryCondition}, r.reported...) {
		if meta.FindStatusCondition(conditions, conditionType) == nil {
			SetCondition(ctx, resource, metav1.Condition{
				Type: conditionType, Status: metav1.ConditionUnknown, Reason: reasonInitializing,
			})
		}
	}
}

// summarize sets the summary condition after the tree ran.
func (r *ResourceReconciler[T]) summarize(ctx context.Context, resource T) {
	summary := metav1.Condition{
		Status: metav1.ConditionFalse, Reason: reasonTerminating, Message: "the resource is being deleted",
	}
	if resource.GetDeletionTimestamp() == nil {
		summary = summaryOf(r.reported, statusfield.Of(resource).GetConditions())
	}
	summary.Type = r.SummaryCondition
	SetCondition(ctx, resource, summary)
}
