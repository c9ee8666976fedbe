package reconcilers

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestChangedStatus(t *testing.T) {
	widget := func(change func(*resources.WidgetStatus)) *resources.Widget {
		w := &resources.Widget{}
		w.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"}}
		change(&w.Status)
		return w
	}
	for want, change := range map[string]func(*resources.WidgetStatus){
		"it differs":                          func(*resources.WidgetStatus) {},
		"status.fields differs":               func(s *resources.WidgetStatus) { s.Fields = map[string]string{"token": "private"} },
		"status.conditions differs":           func(s *resources.WidgetStatus) { s.Conditions[0].ObservedGeneration = 2 },
		"Ready says: x y":                     func(s *resources.WidgetStatus) { s.Conditions[0].Message = "x\n\ty" },
		"Ready is True (Done)":                func(s *resources.WidgetStatus) { s.Conditions[0].Reason = "Done" },
		"Done is True (Ready), Ready is gone": func(s *resources.WidgetStatus) { s.Conditions[0].Type = "Done" },
		"status.fields, status.observedGeneration differ": func(s *resources.WidgetStatus) {
			s.ObservedGeneration, s.Fields = 2, map[string]string{}
			s.Fields["a"] = "1"
		},
	} {
		before := widget(func(*resources.WidgetStatus) {})
		if got := changedStatus(before, widget(change)); got != want {
			t.Errorf("the reason is %q, want %q", got, want)
		}
		if got := changedStatus(widget(change), before); want[0] == 's' && got != want {
			t.Errorf("the other way round, the reason is %q, want %q", got, want)
		}
	}
}
