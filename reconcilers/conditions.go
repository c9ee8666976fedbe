package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/internal/statusfield"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/gotype"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conditionKeeper sets conditions one by one. It sums up nothing.
var conditionKeeper = apis.NewLivingConditionSet()

// SetCondition stores a condition in the status of resource, in memory, in place of the one of its type. The status is
// any field Status with Conditions of type []metav1.Condition, or the status of an unstructured object. Without
// conditions it does nothing.
//
// The transition time is the time of the request, and moves only if the status of the condition changes. The observed
// generation is the generation of the request. Conditions are kept sorted by type.
func SetCondition(ctx context.Context, resource client.Object, condition metav1.Condition) {
	conditionKeeper.ManageWithContext(ctx, statusfield.Of(resource)).SetCondition(condition)
}

// RemoveCondition removes the condition of that type from the status of resource, in memory.
func RemoveCondition(resource client.Object, conditionType string) {
	status := statusfield.Of(resource)
	conditions := slices.Clone(status.GetConditions())
	if meta.RemoveStatusCondition(&conditions, conditionType) {
		status.SetConditions(conditions)
	}
}

// GetCondition returns a copy of the condition of that type from the status of resource, or nil if there is none.
func GetCondition(resource client.Object, conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(statusfield.Of(resource).GetConditions(), conditionType).DeepCopy()
}

// reasonReconciled is the reason of an error condition while there is no error.
const reasonReconciled = "Reconciled"

// maxErrorMessage limits the message of an error condition, in bytes.
const maxErrorMessage = 1024

// errorCondition returns what a condition says of the error of a tree; its type is left unset. Locate tells where an
// error came up. It returns false if the condition stays as it is, because the error is quiet or a conflict.
func errorCondition(err error, locate func(error) (failure, bool)) (metav1.Condition, bool) {
	switch {
	case err == nil, isHalt(err) && !hidesFailure(err):
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonReconciled}, true
	case isQuiet(err):
		return metav1.Condition{}, false
	}
	var reason Class
	var texts []string
	for _, member := range joinedErrors(err, locate) {
		class, text := Classify(member), member.Error()
		if found, ok := locate(member); ok {
			class = found.class
			var located *Error
			if !errors.As(member, &located) {
				text = (&Error{Path: found.path, Object: found.object, Err: member}).Error()
			}
		}
		if class == ClassConflict {
			// The cache is older than the object. The next request reads it anew.
			continue
		}
		reason = cmp.Or(reason, class, ClassRetry)
		texts = append(texts, text)
	}
	return metav1.Condition{
		Status:  metav1.ConditionFalse,
		Reason:  string(reason),
		Message: errorMessage(slices.Compact(texts)...),
	}, len(texts) > 0
}

// errorMessage returns the texts of errors as the message of a condition.
func errorMessage(texts ...string) string {
	text := strings.ReplaceAll(strings.Join(texts, "\n"), "\n", "; ")
	return message.Truncate(text, maxErrorMessage)
}

// joinedErrors returns the errors that err joins. It returns err itself if it came up as a whole, or says more than
// they do.
func joinedErrors(err error, locate func(error) (failure, bool)) []error {
	if found, ok := locate(err); ok && gotype.Comparable(err) && found.err == err {
		return []error{err}
	}
	members := wrappedErrors(err)
	var texts []string
	for _, member := range members {
		texts = append(texts, member.Error())
	}
	if _, aggregate := err.(interface{ Errors() []error }); !aggregate && strings.Join(texts, "\n") != err.Error() {
		return []error{err}
	}
	var all []error
	for _, member := range members {
		all = append(all, joinedErrors(member, locate)...)
	}
	return all
}

// checkConditions returns an error for a type whose status cannot have the error condition, and for a node that sets a
// condition that the root sets.
func (r *ResourceReconciler[T]) checkConditions(parts *rootParts[T]) error {
	if r.ErrorCondition != "" && !statusfield.CanHaveConditions(reflect.TypeOf(r.Type)) {
		return parts.errorf("must have a status with Conditions of type []metav1.Condition to define ErrorCondition")
	}
	places := placesOf(Describe(r.Reconciler))
	for i, p := range places {
		for _, condition := range p.Conditions {
			if condition == "" {
				continue
			}
			if condition == r.ErrorCondition || condition == r.SummaryCondition {
				return parts.errorf("sets the condition %s, so node %s must set another one", condition, p.path)
			}
			if slices.Contains(r.retired, condition) {
				return parts.errorf("retires the condition %s, so node %s must not set it", condition, p.path)
			}
			for _, earlier := range places[:i] {
				if r.SummaryCondition != "" && !earlier.excludes(p) && slices.Contains(earlier.Conditions, condition) {
					return parts.errorf("sums up the condition %s, so only one of the nodes %s and %s may set it",
						condition, earlier.path, p.path)
				}
			}
		}
	}
	if err := checkAwaited(places, r.SummaryCondition, r.ErrorCondition); err != nil {
		return parts.errorf("%w", err)
	}
	return nil
}

// showError sets the error condition of resource after the tree returned err. Original is the resource as it was read.
func (r *ResourceReconciler[T]) showError(ctx context.Context, p *requestState, original, resource T, err error) {
	summarized := r.ErrorCondition == r.SummaryCondition
	previous := GetCondition(original, r.ErrorCondition)
	condition, ok := errorCondition(err, p.locate)
	switch {
	case !ok && !summarized && previous != nil:
		condition = *previous
	case !ok, summarized && condition.Status == metav1.ConditionTrue:
		return
	}
	condition.Type = r.ErrorCondition
	if ok {
		ReportCondition(ctx, resource, condition)
	} else {
		SetCondition(ctx, resource, condition)
	}
}
