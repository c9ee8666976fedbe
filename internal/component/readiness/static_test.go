package readiness_test

import (
	"testing"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/component/readiness"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatLooksAtTheStatusIsNotStatic(t *testing.T) {
	kind := schema.GroupKind{Kind: "ConfigMap"}
	if !readiness.Static(kind, component.Settings{IgnoreFields: []string{"/data"}}) {
		t.Errorf("%s should be static", kind)
	}
	for name, settings := range map[string]component.Settings{
		"ready-when":         {ReadyWhen: `object.data.done == "yes"`},
		"observedGeneration": {StatusHint: component.StatusHint{HasObservedGeneration: true}},
		"Ready":              {StatusHint: component.StatusHint{HasReadyCondition: true}},
		"a condition":        {StatusHint: component.StatusHint{Conditions: []string{"Test"}}},
	} {
		if readiness.Static(kind, settings) {
			t.Errorf("a ConfigMap with %s should not be static", name)
		}
	}
}
