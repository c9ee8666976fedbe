package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/statusfield"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of a summary, and of the conditions that it sums up, besides those that the nodes give.
const (
	reasonInitializing = "Initializing"
	reasonReady        = "Ready"
	reasonSuspended    = string(apis.StateSuspended)
	reasonTerminating  = "Terminating"
	reasonWaiting      = "Waiting"
)

// conditionTypes returns the types of the conditions that the nodes of a tree set, in the order of the nodes.
func conditionTypes(tree Description) []string {
	var types []string
	tree.Walk(func(_ string, d Description) {
		for _, conditionType := range d.Conditions {
			if conditionType != "" && !slices.Contains(types, conditionType) {
				types = append(types, conditionType)
			}
		}
	})
	return types
}

// summaryOf sums up the conditions of those types: like the worst of them, see [statusfield.Severity], and of equals
// like the first. It is True if all are, with the reason Suspended if one has it. A type without a condition does not
// count.
func summaryOf(types []string, conditions []metav1.Condition) metav1.Condition {
	var worst *metav1.Condition
	for _, conditionType := range types {
		condition := meta.FindStatusCondition(conditions, conditionType)
		if condition != nil && (worst == nil || statusfield.Severity(condition) > statusfield.Severity(worst)) {
			worst = condition
		}
	}
	switch {
	case worst == nil, worst.Status == metav1.ConditionTrue && worst.Reason != reasonSuspended:
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonReady}
	case worst.Status == metav1.ConditionTrue:
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonSuspended, Message: worst.Type}
	}
	summary := metav1.Condition{Status: metav1.ConditionUnknown, Reason: worst.Reason, Message: worst.Type}
	if worst.Status == metav1.ConditionFalse {
		summary.Status = metav1.ConditionFalse
	}
	if worst.Message != "" {
		summary.Message = message.Printable(fmt.Sprintf("%s: %s", worst.Type, worst.Message))
	}
	return summary
}

// initializeSummary adds the conditions that the nodes set, and their summary, as far as they are missing and the
// resource is not terminating. From then on it is noted which of them the nodes set.
func (r *ResourceReconciler[T]) initializeSummary(ctx context.Context, p *requestState, resource T) {
	conditions := statusfield.Of(resource).GetConditions()
	for _, conditionType := range append([]string{r.SummaryCondition}, p.described...) {
		if meta.FindStatusCondition(conditions, conditionType) == nil && resource.GetDeletionTimestamp() == nil {
			SetCondition(ctx, resource, metav1.Condition{
				Type: conditionType, Status: metav1.ConditionUnknown, Reason: reasonInitializing,
			})
		}
	}
	p.conditions.Start()
}

// completeConditions changes the conditions that the nodes should have set and have not, after the tree returned err.
func (r *ResourceReconciler[T]) completeConditions(ctx context.Context, p *requestState, resource T, err error) {
	for _, conditionType := range p.described {
		state := unset{generation: resource.GetGeneration(), waiting: waitingFor(err, p.locate)}
		state.needed, state.known = p.conditions.Of(conditionType)
		state.condition = meta.FindStatusCondition(statusfield.Of(resource).GetConditions(), conditionType)
		if condition, ok := state.decide(); ok {
			condition.Type = conditionType
			ReportCondition(ctx, resource, condition)
		}
	}
}

// terminateConditions has the conditions say that the resource is terminating, but for those that a node has set: what
// they are about may be gone.
func (r *ResourceReconciler[T]) terminateConditions(ctx context.Context, p *requestState, resource T) {
	for _, conditionType := range p.described {
		_, known := p.conditions.Of(conditionType)
		if !known && meta.FindStatusCondition(statusfield.Of(resource).GetConditions(), conditionType) != nil {
			ReportCondition(ctx, resource, metav1.Condition{
				Type: conditionType, Status: metav1.ConditionUnknown, Reason: reasonTerminating, Message: beingDeleted,
			})
		}
	}
}

// unset is what is known of a condition at the end of a request.
type unset struct {
	// condition is nil if it is missing.
	condition *metav1.Condition
	// needed and known say whether it was set in the request, or is not needed.
	needed, known bool
	// waiting says which node halted. It is empty if none did.
	waiting string
	// generation is that of the resource.
	generation int64
}

// decide returns what becomes of the condition, without a type, and false if it stays as it is.
//
// A condition that nothing was found out about stays: the request may have failed before. It is Unknown if its node
// waits, and if it is about an older generation, for which it may have been right. A condition without a generation
// does not say what it is about: other code than that of this module sets it.
func (u unset) decide() (metav1.Condition, bool) {
	condition := metav1.Condition{Status: metav1.ConditionUnknown, Reason: reasonWaiting, Message: u.waiting}
	about := int64(0)
	if u.condition != nil {
		about = u.condition.ObservedGeneration
	}
	switch {
	case u.condition == nil && u.known && !u.needed, u.condition != nil && u.known:
		return metav1.Condition{}, false
	case u.condition == nil:
		condition.Reason, condition.Message = reasonInitializing, ""
	case about == 0 && u.generation != 0:
		return metav1.Condition{}, false
	case u.waiting != "":
	case about < u.generation:
		condition.Message = "not evaluated for this generation of the resource yet"
	default:
		return metav1.Condition{}, false
	}
	return condition, true
}

// waitingFor says which node halted, so that others wait, and returns an empty text if the tree returned no halt.
func waitingFor(err error, locate func(error) (failure, bool)) string {
	if !isHalt(err) || errors.Is(err, ErrDurable) {
		return ""
	}
	if halted, ok := locate(err); ok {
		return fmt.Sprintf("waiting for the node %s", halted.path)
	}
	return "waiting for another node"
}

// Retires has the root remove conditions of those types, which earlier releases of the program reported and no node
// reports any more: the node was removed, or reports another type. Without that they stay in the status of each
// resource as they were last, because it is recorded nowhere who has set a condition. It is not needed for the
// conditions of a feature and of the nodes below it, which the feature records. Call it before the first use.
func (r *ResourceReconciler[T]) Retires(conditionTypes ...string) *ResourceReconciler[T] {
	r.retired = append(r.retired, conditionTypes...)
	return r
}

// beingDeleted is what a condition says of a terminating resource.
const beingDeleted = "the resource is being deleted"

// deletionText says what a terminating resource with finalizers waits for. Own are the finalizers of the tree; as long
// as one of them is left, its node says why.
func deletionText(finalizers, own []string) string {
	text := beingDeleted
	var foreign, parts []string
	for _, finalizer := range finalizers {
		switch {
		case slices.Contains(own, finalizer):
			return text
		case finalizer == metav1.FinalizerDeleteDependents, finalizer == metav1.FinalizerOrphanDependents:
			parts = []string{"waits for the garbage collector"}
		default:
			foreign = append(foreign, finalizer)
		}
	}
	switch len(foreign) {
	case 0:
	case 1:
		parts = append(parts, fmt.Sprintf("waits for the finalizer %s (not one of this tree)", foreign[0]))
	default:
		parts = append(parts, fmt.Sprintf("waits for the finalizers %s (none of this tree)",
			message.List(foreign, maxFinalizersShown)))
	}
	return strings.Join(append([]string{text}, parts...), ", and ")
}

// maxFinalizersShown is how many finalizers a text names.
const maxFinalizersShown = 5

// summarize sets the summary condition after the tree ran.
func (r *ResourceReconciler[T]) summarize(ctx context.Context, p *requestState, resource T, err error) {
	summary := metav1.Condition{
		Status: metav1.ConditionFalse, Reason: reasonTerminating,
	}
	if resource.GetDeletionTimestamp() == nil {
		r.completeConditions(ctx, p, resource, err)
		summary = summaryOf(p.described, statusfield.Of(resource).GetConditions())
		if summary.Status == metav1.ConditionTrue && p.hanging != "" {
			summary.Status, summary.Reason, summary.Message = metav1.ConditionFalse, reasonTerminating, p.hanging
		}
	} else {
		r.terminateConditions(ctx, p, resource)
		summary.Message = deletionText(resource.GetFinalizers(), Describe(r.Reconciler).allFinalizers())
	}
	summary.Type = r.SummaryCondition
	SetCondition(ctx, resource, summary)
}
