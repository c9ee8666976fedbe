package apis

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rtime "github.com/espalier-dev/espalier/time"
)

// ConditionSet names one condition that says whether all is well, the happy condition, and the dependent conditions
// that it sums up:
//
//   - False as soon as one dependent is False, with the reason and message of the first such one;
//   - else Unknown as long as one dependent is Unknown or missing, with the reason and message of the first such one;
//   - else True, with the happy reason of the set and no message.
//
// First means first in the order in which the dependents were given. A ConditionSet holds no state: one, usually a
// package variable, serves all resources of a type. The zero value is a living set without dependents.
type ConditionSet struct {
	happyType   string
	happyReason string
	dependents  []string
}

// NewLivingConditionSet returns a set whose happy condition is Ready, with the reason Ready when True. It suits
// resources that go on for as long as they exist. Repeated dependents, and Ready among them, are dropped.
func NewLivingConditionSet(d ...string) ConditionSet {
	return NewLivingConditionSetWithHappyReason(ConditionReady, d...)
}

// NewLivingConditionSetWithHappyReason is [NewLivingConditionSet] with another reason for Ready when it is True.
func NewLivingConditionSetWithHappyReason(happyReason string, d ...string) ConditionSet {
	return newConditionSet(ConditionReady, happyReason, d)
}

// NewBatchConditionSet returns a set whose happy condition is Succeeded, with the reason Succeeded when True. It suits
// resources that come to an end. Repeated dependents, and Succeeded among them, are dropped.
func NewBatchConditionSet(d ...string) ConditionSet {
	return NewBatchConditionSetWithHappyReason(ConditionSucceeded, d...)
}

// NewBatchConditionSetWithHappyReason is [NewBatchConditionSet] with another reason for Succeeded when it is True.
func NewBatchConditionSetWithHappyReason(happyReason string, d ...string) ConditionSet {
	return newConditionSet(ConditionSucceeded, happyReason, d)
}

func newConditionSet(happyType, happyReason string, dependents []string) ConditionSet {
	set := ConditionSet{happyType: happyType, happyReason: happyReason}
	for _, d := range dependents {
		if d != happyType && !slices.Contains(set.dependents, d) {
			set.dependents = append(set.dependents, d)
		}
	}
	return set
}

// Manage is ManageWithContext without a context.
//
// Deprecated: use ManageWithContext. Manage stamps transitions with the wall clock instead of the time of the request,
// and knows no generation.
func (r ConditionSet) Manage(status ConditionsAccessor) ConditionManager {
	return r.ManageWithContext(context.Background(), status)
}

// ManageWithContext returns a manager of the conditions of one status during one request. The time of transitions is
// that of the request (see rtime.RetrieveNow), in whole seconds as the API stores them; the observed generation is the
// one that [StashGeneration] put on ctx.
//
// With a nil status every operation of the manager does nothing.
func (r ConditionSet) ManageWithContext(ctx context.Context, status ConditionsAccessor) ConditionManager {
	r.happyType = cmp.Or(r.happyType, ConditionReady)
	r.happyReason = cmp.Or(r.happyReason, r.happyType)
	return &conditionManager{
		ConditionSet: r,
		status:       status,
		now:          rfc3339(ctx),
		generation:   RetrieveGeneration(ctx),
	}
}

func rfc3339(ctx context.Context) metav1.Time {
	now := metav1.NewTime(rtime.RetrieveNow(ctx))
	return now.Rfc3339Copy()
}

// isDependent tells whether the happy condition sums up the condition of type t.
func (r ConditionSet) isDependent(t string) bool {
	return slices.Contains(r.dependents, t)
}

// isTerminal tells whether t is the happy condition or one that it sums up.
func (r ConditionSet) isTerminal(t string) bool {
	return t == r.happyType || r.isDependent(t)
}

// summary returns what the happy condition is to be, given all conditions. The time and the generation are left unset.
func (r ConditionSet) summary(conditions []metav1.Condition) metav1.Condition {
	sum := metav1.Condition{Type: r.happyType, Status: metav1.ConditionTrue, Reason: r.happyReason}
	for _, t := range r.dependents {
		c := meta.FindStatusCondition(conditions, t)
		switch {
		case ConditionIsFalse(c):
			sum.Status, sum.Reason, sum.Message = metav1.ConditionFalse, c.Reason, c.Message
			return sum
		case ConditionIsTrue(c) || sum.Status == metav1.ConditionUnknown:
		case c == nil:
			sum.Status, sum.Reason = metav1.ConditionUnknown, reasonInitializing
		default:
			sum.Status, sum.Reason, sum.Message = metav1.ConditionUnknown, c.Reason, c.Message
		}
	}
	return sum
}
