package reconcilers

import (
	"cmp"
	"context"
	"errors"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/panics"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Recover makes an error of a panic: an [Error] with the path of ctx, of [ClassRetry]. Its text says with what the
// function panicked, and the stack is logged. A node with a status of its own calls it, so that the status does not
// stay as it was:
//
//	defer reconcilers.Recover(ctx, &err)
//
// Other nodes need not: a node around them, or the root, does the same. Recover does nothing if the function does not
// panic, and if the manager is configured not to recover from panics.
func Recover(ctx context.Context, err *error) {
	if contextOf(ctx).state.leavesPanics() {
		return
	}
	if value := recover(); value != nil {
		*err = panicError(ctx, value)
	}
}

// panicError returns the error for a value that was recovered in the node of ctx.
func panicError(ctx context.Context, value any) error {
	err := &Error{Path: RetrievePath(ctx), Class: ClassRetry, Err: panics.Recovered(ctx, value)}
	contextOf(ctx).state.panicked(err.Error())
	return err
}

// leavesPanics reports whether panics reach the caller of the root.
func (s *requestState) leavesPanics() bool { return s != nil && s.leavePanics }

// panicked notes the text of a panic.
func (s *requestState) panicked(text string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.panic = cmp.Or(s.panic, text)
}

// ReconcileNested runs a node that is nested in the node of ctx, which makes it the place of errors and panics that the
// nested node does not record itself (see [Failed]). Below a root, a panic is an error of the nested node: it is as
// [Recover] makes it, and the conditions that the node describes are False, with the reason Error.
func ReconcileNested[Type client.Object](ctx context.Context, node SubReconciler[Type], resource Type) (Result, error) {
	s := contextOf(ctx).state
	if s != nil && s.observers != nil {
		return observed(ctx, s, node, resource)
	}
	return nested(ctx, s, node, resource)
}

func nested[Type client.Object](
	ctx context.Context, s *requestState, node SubReconciler[Type], resource Type,
) (Result, error) {
	result, err := guarded(ctx, s, node, resource)
	recordUnlocated(ctx, err)
	return result, err
}

// guarded runs a node. Below a root, a panic is an error.
func guarded[Type client.Object](
	ctx context.Context, s *requestState, node SubReconciler[Type], resource Type,
) (result Result, err error) {
	returned := false
	defer func() {
		if returned || s == nil || s.rootless || s.leavePanics {
			return
		}
		if value := recover(); value != nil {
			result, err = Result{}, nodePanicked(ctx, node, resource, value)
		}
	}()
	result, err = node.Reconcile(ctx, resource)
	returned = true
	return result, err
}

// nodePanicked returns the error of a node below that of ctx, and has the conditions of the node say it.
func nodePanicked(ctx context.Context, node any, resource client.Object, value any) error {
	described := Describe(node)
	if described.Name != "" {
		ctx = Enter(ctx, described.Name)
	}
	err := panicError(ctx, value)
	for _, conditionType := range described.Conditions {
		if conditionType != "" {
			ReportCondition(ctx, resource, panicCondition(conditionType, err.Error()))
		}
	}
	return err
}

// isPanic reports whether a node panicked.
func isPanic(err error) bool {
	_, ok := errors.AsType[*panics.Error](err)
	return ok
}

// panicCondition returns the condition that says that a node panicked.
func panicCondition(conditionType, text string) metav1.Condition {
	return metav1.Condition{
		Type:    conditionType,
		Status:  metav1.ConditionFalse,
		Reason:  string(apis.StateError),
		Message: errorMessage(text),
	}
}

// showPanic has the summary of resource, or its condition Ready, say that a node panicked. The nodes have then not
// found out all that it says. It leaves the condition of the type shown as it is.
func (r *root) showPanic(
	ctx context.Context, p *requestState, resource client.Object, summary, shown string,
) {
	conditionType := cmp.Or(summary, apis.ConditionReady)
	if p.panic == "" || conditionType == shown {
		return
	}
	condition := GetCondition(resource, conditionType)
	if condition == nil || summary != "" && condition.Status == metav1.ConditionFalse {
		return
	}
	ReportCondition(ctx, resource, panicCondition(conditionType, p.panic))
}
