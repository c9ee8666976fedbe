package apis_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/apis"
)

func TestConditionStatus(t *testing.T) {
	condition := func(status metav1.ConditionStatus) *metav1.Condition { return &metav1.Condition{Status: status} }
	tests := map[string]struct {
		condition                *metav1.Condition
		isTrue, isFalse, unknown bool
	}{
		"True":    {condition: condition(metav1.ConditionTrue), isTrue: true},
		"False":   {condition: condition(metav1.ConditionFalse), isFalse: true},
		"Unknown": {condition: condition(metav1.ConditionUnknown), unknown: true},
		"empty":   {condition: condition(""), unknown: true},
		"nil":     {unknown: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := apis.ConditionIsTrue(tc.condition); got != tc.isTrue {
				t.Errorf("true: want %t, got %t", tc.isTrue, got)
			}
			if got := apis.ConditionIsFalse(tc.condition); got != tc.isFalse {
				t.Errorf("false: want %t, got %t", tc.isFalse, got)
			}
			if got := apis.ConditionIsUnknown(tc.condition); got != tc.unknown {
				t.Errorf("unknown: want %t, got %t", tc.unknown, got)
			}
		})
	}
}

func TestStatusAccessors(t *testing.T) {
	status := &apis.Status{}
	if status.GetCondition("A") != nil {
		t.Error("want no condition in an empty status")
	}
	status.SetConditions(conditions(earlier, "A True Done"))
	status.GetCondition("A").Reason = "Changed"
	if diff := cmp.Diff(conditions(earlier, "A True Done"), status.GetConditions()); diff != "" {
		t.Errorf("conditions (-want, +got):\n%s", diff)
	}
}

func TestStatusAsJSON(t *testing.T) {
	for want, status := range map[string]apis.Status{
		`{}`: {},
		`{"observedGeneration":2,"conditions":[{"type":"A","status":"True",` +
			`"lastTransitionTime":"2024-01-01T00:00:00Z","reason":"Done","message":""}]}`: {
			ObservedGeneration: 2, Conditions: conditions(earlier, "A True Done"),
		},
	} {
		got, err := json.Marshal(status)
		if err != nil || string(got) != want {
			t.Errorf("want %s, got %s, %v", want, got, err)
		}
	}
}

func TestStatusIsCopiedDeeply(t *testing.T) {
	status := &apis.Status{ObservedGeneration: 2, Conditions: conditions(earlier, "A True Done")}
	copied := status.DeepCopy()
	if diff := cmp.Diff(status, copied); diff != "" {
		t.Errorf("copy (-want, +got):\n%s", diff)
	}
	copied.Conditions[0].Reason = "Changed"
	if status.Conditions[0].Reason != "Done" {
		t.Error("the copy shares its conditions")
	}
	if (*apis.Status)(nil).DeepCopy() != nil {
		t.Error("want nil as the copy of nil")
	}
}
