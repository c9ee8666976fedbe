package apis

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ConditionReady sums up the conditions of a resource that runs for as long as it exists.
	ConditionReady = "Ready"
	// ConditionSucceeded sums up the conditions of a resource that comes to an end.
	ConditionSucceeded = "Succeeded"
)

var _ ConditionsAccessor = (*Status)(nil)

// ConditionsAccessor is implemented by a status that has conditions.
type ConditionsAccessor interface {
	// GetConditions returns the conditions. The caller does not change them.
	GetConditions() []metav1.Condition
	// SetConditions replaces all conditions.
	SetConditions([]metav1.Condition)
}

// Status is the part of a status that most resources have in common. Embed it with `json:",inline"`.
//
// +kubebuilder:object:generate=true
type Status struct {
	// ObservedGeneration is the metadata.generation of the resource for which the status was last computed.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are the latest observations of the state of the resource.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// GetConditions returns the conditions themselves, not a copy.
func (s *Status) GetConditions() []metav1.Condition {
	return s.Conditions
}

// SetConditions replaces the conditions.
func (s *Status) SetConditions(conditions []metav1.Condition) {
	s.Conditions = conditions
}

// GetCondition returns a copy of the condition of type t, or nil if there is none.
func (s *Status) GetCondition(t string) *metav1.Condition {
	return meta.FindStatusCondition(s.Conditions, t).DeepCopy()
}

// ConditionIsTrue reports whether the status of the condition is True. For nil it returns false.
func ConditionIsTrue(c *metav1.Condition) bool {
	return c != nil && c.Status == metav1.ConditionTrue
}

// ConditionIsFalse reports whether the status of the condition is False. For nil it returns false.
func ConditionIsFalse(c *metav1.Condition) bool {
	return c != nil && c.Status == metav1.ConditionFalse
}

// ConditionIsUnknown reports whether the status of the condition is Unknown or empty. For nil it returns true.
func ConditionIsUnknown(c *metav1.Condition) bool {
	return c == nil || c.Status == metav1.ConditionUnknown || c.Status == ""
}
