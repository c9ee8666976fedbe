package apis

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reasonInitializing is the reason of a condition that nobody has marked yet.
const reasonInitializing = "Initializing"

// The text is one that programs written for reconciler.io/runtime may compare with.
//
//lint:ignore ST1005 the text is part of the compatible vocabulary
var errTerminal = errors.New("Clearing terminal conditions not implemented")

// ConditionManager changes the conditions of one status as a [ConditionSet] tells.
//
// A condition that is marked as it is already stays untouched. A transition time moves only when the status of its
// condition changes, not for another reason, message or generation. Conditions are kept sorted by type.
type ConditionManager interface {
	// IsHappy tells whether the happy condition is True.
	IsHappy() bool

	// GetCondition returns a copy of the condition of type t, or nil if there is none.
	GetCondition(t string) *metav1.Condition

	// SetCondition stores the condition in place of the one of its type. The time of the transition is always set here.
	// An ObservedGeneration of zero is replaced by that of the request; any other is kept. The happy condition does not
	// follow.
	SetCondition(new metav1.Condition)

	// ClearCondition removes the condition of type t, if there is one. It is an error if t is the happy condition or
	// one of the dependents.
	ClearCondition(t string) error

	// MarkTrue sets the condition of type t to True. The message is formatted by fmt.Sprintf, here and below. If t is a
	// dependent, the happy condition follows; it also becomes True, with the happy reason, if there are dependents and
	// all are True.
	MarkTrue(t string, reason, messageFormat string, messageA ...interface{})

	// MarkUnknown sets the condition of type t to Unknown. If t is a dependent, the happy condition follows; it also
	// becomes False, as the ConditionSet tells, if any dependent is.
	MarkUnknown(t string, reason, messageFormat string, messageA ...interface{})

	// MarkFalse sets the condition of type t to False. If t is a dependent, the happy condition follows.
	MarkFalse(t string, reason, messageFormat string, messageA ...interface{})

	// InitializeConditions adds the happy condition and the dependents as far as they are missing, with the reason
	// Initializing. What it adds is Unknown, except that a dependent is True where the happy condition was True
	// already. Present conditions stay as they are.
	InitializeConditions()
}

type conditionManager struct {
	ConditionSet

	status     ConditionsAccessor
	now        metav1.Time
	generation int64
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
	new.LastTransitionTime = m.now
	if new.ObservedGeneration == 0 {
		new.ObservedGeneration = m.generation
	}

	if c := m.find(new.Type); c != nil && sameObservation(*c, new) {
		return
	}
	// The current slice may be shared with whoever asked for it before, and meta changes it in place.
	conditions := slices.Clone(m.status.GetConditions())
	meta.SetStatusCondition(&conditions, new)
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int {
		return strings.Compare(a.Type, b.Type)
	})
	m.status.SetConditions(conditions)
}

// sameObservation tells whether two conditions differ in nothing but their transition time.
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
	m.SetCondition(metav1.Condition{
		Type:    t,
		Status:  status,
		Reason:  reason,
		Message: fmt.Sprintf(messageFormat, messageA...),
	})
	if sum, ok := m.follow(t, status); ok {
		m.SetCondition(sum)
	}
}

// follow returns what the happy condition is to be after t was marked with status, or false if it is to stay. Other
// conditions than the dependents, the happy one included, may be marked as their author likes, save where that
// contradicts dependents that are all True or of which one is False.
func (m *conditionManager) follow(t string, status metav1.ConditionStatus) (metav1.Condition, bool) {
	if len(m.dependents) == 0 {
		return metav1.Condition{}, false
	}
	sum := m.summary(m.status.GetConditions())
	switch {
	case m.isDependent(t),
		status == metav1.ConditionTrue && sum.Status == metav1.ConditionTrue,
		status == metav1.ConditionUnknown && sum.Status == metav1.ConditionFalse:
		return sum, true
	default:
		return metav1.Condition{}, false
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
