package apis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/internal/conditionlog"
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
	now := metav1.NewTime(rtime.RetrieveNow(ctx))
	return &conditionManager{
		ConditionSet: r,
		status:       status,
		now:          now.Rfc3339Copy(),
		generation:   RetrieveGeneration(ctx),
		log:          conditionlog.Of(ctx),
	}
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

// reasonInitializing is the reason of a condition that was not marked yet.
const reasonInitializing = "Initializing"

// The text is one that programs written for reconciler.io/runtime may compare with.
//
//lint:ignore ST1005 the text is part of the compatible vocabulary
var errTerminal = errors.New("Clearing terminal conditions not implemented")

// ConditionManager changes the conditions of one status by the rules of a [ConditionSet].
//
// A condition that is marked as it is already stays untouched. A transition time moves only when the status of its
// condition changes, not for another reason, message or generation. Conditions are kept sorted by type.
type ConditionManager interface {
	// IsHappy reports whether the happy condition is True.
	IsHappy() bool

	// GetCondition returns a copy of the condition of type t, or nil if there is none.
	GetCondition(t string) *metav1.Condition

	// SetCondition stores the condition in place of the one of its type. It sets the time of the transition. It
	// replaces an ObservedGeneration of zero by the generation of the request, and keeps any other. The happy condition
	// stays as it is.
	SetCondition(new metav1.Condition)

	// ClearCondition removes the condition of type t, if there is one. It is an error if t is the happy condition or
	// one of the dependents.
	ClearCondition(t string) error

	// MarkTrue sets the condition of type t to True. The message is formatted by fmt.Sprintf, here and below.
	//
	// If all dependents are True then, the happy condition becomes True too. Otherwise it changes only if it repeated
	// t: it then repeats another dependent that is not True. A happy condition that is missing, or that the author has
	// set, stays as it is.
	MarkTrue(t string, reason, messageFormat string, messageA ...interface{})

	// MarkUnknown sets the condition of type t to Unknown. If t is a dependent, the happy condition repeats it, unless
	// another dependent is False. The happy condition is then False: as it was, or, if it was not False or repeated t,
	// like the first dependent that is False.
	MarkUnknown(t string, reason, messageFormat string, messageA ...interface{})

	// MarkFalse sets the condition of type t to False. If t is a dependent, the happy condition repeats it.
	MarkFalse(t string, reason, messageFormat string, messageA ...interface{})

	// InitializeConditions adds the happy condition and the dependents that are missing, with the reason Initializing.
	// An added condition is Unknown, but an added dependent is True if the happy condition was True before. Conditions
	// that exist stay as they are.
	InitializeConditions()
}

type conditionManager struct {
	ConditionSet

	status     ConditionsAccessor
	now        metav1.Time
	generation int64
	log        *conditionlog.Log
}

func (m *conditionManager) IsHappy() bool {
	return ConditionIsTrue(m.find(m.happyType))
}

func (m *conditionManager) GetCondition(t string) *metav1.Condition {
	return m.find(t).DeepCopy()
}

// find returns the stored condition itself, not to be changed, or nil if there is none.
func (m *conditionManager) find(t string) *metav1.Condition {
	if m.status == nil {
		return nil
	}
	return meta.FindStatusCondition(m.status.GetConditions(), t)
}

func (m *conditionManager) SetCondition(new metav1.Condition) {
	if m.status == nil {
		return
	}
	m.log.Set(new.Type)
	new.LastTransitionTime = m.now
	if new.ObservedGeneration == 0 {
		new.ObservedGeneration = m.generation
	}

	if c := m.find(new.Type); c != nil && sameObservation(*c, new) {
		return
	}
	// Callers of GetConditions may still hold the current slice, and meta changes it in place.
	conditions := slices.Clone(m.status.GetConditions())
	meta.SetStatusCondition(&conditions, new)
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int {
		return strings.Compare(a.Type, b.Type)
	})
	m.status.SetConditions(conditions)
}

// sameObservation reports whether two conditions are equal, apart from their transition times.
func sameObservation(a, b metav1.Condition) bool {
	a.LastTransitionTime = b.LastTransitionTime
	return a == b
}

func (m *conditionManager) ClearCondition(t string) error {
	if m.status == nil {
		return nil
	}
	if m.isTerminal(t) {
		return errTerminal
	}
	conditions := slices.Clone(m.status.GetConditions())
	if meta.RemoveStatusCondition(&conditions, t) {
		m.status.SetConditions(conditions)
	}
	return nil
}

func (m *conditionManager) MarkTrue(t string, reason, messageFormat string, messageA ...interface{}) {
	m.mark(t, metav1.ConditionTrue, reason, messageFormat, messageA)
}

func (m *conditionManager) MarkUnknown(t string, reason, messageFormat string, messageA ...interface{}) {
	m.mark(t, metav1.ConditionUnknown, reason, messageFormat, messageA)
}

func (m *conditionManager) MarkFalse(t string, reason, messageFormat string, messageA ...interface{}) {
	m.mark(t, metav1.ConditionFalse, reason, messageFormat, messageA)
}

func (m *conditionManager) mark(
	t string, status metav1.ConditionStatus, reason, messageFormat string, messageA []interface{},
) {
	if m.status == nil {
		return
	}
	marked := metav1.Condition{
		Type:    t,
		Status:  status,
		Reason:  reason,
		Message: fmt.Sprintf(messageFormat, messageA...),
	}
	repeated := m.happyRepeats(marked.Type)
	m.SetCondition(marked)
	if happy, ok := m.follow(marked, repeated); ok {
		happy.Type = m.happyType
		m.SetCondition(happy)
	}
}

// happyRepeats reports whether the happy condition says the same as the dependent t.
func (m *conditionManager) happyRepeats(t string) bool {
	happy, c := m.find(m.happyType), m.find(t)
	return m.isDependent(t) && happy != nil && c != nil &&
		happy.Status == c.Status && happy.Reason == c.Reason && happy.Message == c.Message
}

// follow returns what the happy condition becomes now that a condition is marked, or false if it stays. Repeated is
// whether the happy condition repeated the marked one before. If it did, it has to change with it. If it did not, it
// repeats another dependent or its author has set it, and a condition that is True is no reason to replace it.
func (m *conditionManager) follow(marked metav1.Condition, repeated bool) (metav1.Condition, bool) {
	if len(m.dependents) == 0 {
		return metav1.Condition{}, false
	}
	sum := m.summary(m.status.GetConditions())
	switch {
	case marked.Status == metav1.ConditionTrue:
		return sum, repeated || sum.Status == metav1.ConditionTrue
	case marked.Status == metav1.ConditionUnknown && sum.Status == metav1.ConditionFalse:
		return sum, repeated || !ConditionIsFalse(m.find(m.happyType))
	default:
		return marked, m.isDependent(marked.Type)
	}
}

func (m *conditionManager) InitializeConditions() {
	if m.status == nil {
		return
	}
	status := metav1.ConditionUnknown
	if happy := m.find(m.happyType); happy == nil {
		m.SetCondition(metav1.Condition{
			Type: m.happyType, Status: metav1.ConditionUnknown, Reason: reasonInitializing,
		})
	} else if ConditionIsTrue(happy) {
		status = metav1.ConditionTrue
	}
	for _, t := range m.dependents {
		if m.find(t) == nil {
			m.SetCondition(metav1.Condition{Type: t, Status: status, Reason: reasonInitializing})
		}
	}
}

type generationKey struct{}

// StashGeneration returns a context with the metadata.generation of the resource being reconciled. Conditions that are
// managed with it record this generation as the observed one. Zero, the generation of a resource that has none, records
// nothing. Of several, the innermost one counts.
func StashGeneration(ctx context.Context, generation int64) context.Context {
	return context.WithValue(ctx, generationKey{}, generation)
}

// RetrieveGeneration returns the generation that [StashGeneration] put on the context, or zero.
func RetrieveGeneration(ctx context.Context) int64 {
	generation, _ := ctx.Value(generationKey{}).(int64)
	return generation
}
