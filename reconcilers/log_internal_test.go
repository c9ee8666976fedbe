package reconcilers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestChangedConditions(t *testing.T) {
	conditions := func(changes ...func(*metav1.Condition)) []metav1.Condition {
		c := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"}
		for _, change := range changes {
			change(&c)
		}
		return []metav1.Condition{c}
	}
	for want, after := range map[string][]metav1.Condition{
		"fields other than conditions differ":         conditions(),
		"conditions have another observed generation": conditions(func(c *metav1.Condition) { c.ObservedGeneration = 2 }),
		"Ready has another message":                   conditions(func(c *metav1.Condition) { c.Message = "x" }),
		"Ready is True (Done)":                        conditions(func(c *metav1.Condition) { c.Reason = "Done" }),
		"Done is True (Ready), Ready is gone":         conditions(func(c *metav1.Condition) { c.Type = "Done" }),
	} {
		if got := changedConditions(conditions(), after); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
