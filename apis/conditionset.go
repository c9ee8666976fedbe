package apis

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rtime "github.com/espalier-dev/espalier/time"
)

// ConditionSet names a happy condition, which says whether all is well, and the dependent conditions that it sums up:
//
//   - It is False while a dependent is False.
//   - Otherwise it is Unknown while a dependent is Unknown or missing.
//   - Otherwise it is True, with the happy reason of the set and no message.
//
// While it is not True, it repeats the reason and message of the dependent that was marked last. When that dependent
// recovers, it repeats the first other one that is not True, in the order in which the dependents were given. A
// [ConditionManager] keeps it up to date as conditions are marked.
//
// A ConditionSet holds no state: one, usually a package variable, serves all resources of a type. The zero value is a
// living set without dependents.
type ConditionSet struct {
	happyType   string
	happyReason string
	dependents  []string
}

// NewLivingConditionSet returns a set whose happy condition is Ready, with the reason Ready when True. It suits
// resources that run for as long as they exist. Repeated dependents, and Ready among them, are dropped.
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
// and records no generation.
func (r ConditionSet) Manage(status ConditionsAccessor) ConditionManager {
	return r.ManageWithContext(context.Background(), status)
}

// ManageWithContext returns a manager of the conditions of one status during one request. The time of transitions is
// the time of the request (see rtime.RetrieveNow), in whole seconds as the API stores them. The observed generation is
// the one that [StashGeneration] put on ctx.
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

// isDependent reports whether the happy condition sums up the condition of type t.
func (r ConditionSet) isDependent(t string) bool {
	return slices.Contains(r.dependents, t)
}

// isTerminal reports whether t is the happy condition or one of the dependents.
func (r ConditionSet) isTerminal(t string) bool {
	return t == r.happyType || r.isDependent(t)
}

// summary returns what the happy condition says if no dependent was marked last: like the first dependent that is
// False, or else the first that is Unknown, where one that was marked comes before one that was not. The time and the
// generation are left unset.
func (r ConditionSet) summary(conditions []metav1.Condition) metav1.Condition {
	sum := metav1.Condition{Type: r.happyType, Status: metav1.ConditionTrue, Reason: r.happyReason}
	for _, t := range r.dependents {
		c := meta.FindStatusCondition(conditions, t)
		switch {
		case ConditionIsFalse(c):
			sum.Status, sum.Reason, sum.Message = metav1.ConditionFalse, c.Reason, c.Message
			return sum
		case ConditionIsTrue(c):
		case c == nil || c.Reason == reasonInitializing:
			if sum.Status == metav1.ConditionTrue {
				sum.Status, sum.Reason = metav1.ConditionUnknown, reasonInitializing
			}
		case sum.Status == metav1.ConditionTrue || sum.Reason == reasonInitializing:
			sum.Status, sum.Reason, sum.Message = metav1.ConditionUnknown, c.Reason, c.Message
		}
	}
	return sum
}
