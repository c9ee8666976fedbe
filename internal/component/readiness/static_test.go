package readiness_test

import (
	"testing"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/readiness"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatLooksAtTheStatusIsNotStatic(t *testing.T) {
	kind := schema.GroupKind{Kind: "ConfigMap"}
	if !readiness.Static(kind, generator.Settings{IgnoreFields: []string{"/data"}}) {
		t.Errorf("%s with ignored fields is not static, want that it is", kind)
	}
	for name, settings := range map[string]generator.Settings{
		"ready-when":         {ReadyWhen: `object.data.done == "yes"`},
		"observedGeneration": {StatusHint: generator.StatusHint{HasObservedGeneration: true}},
		"Ready":              {StatusHint: generator.StatusHint{HasReadyCondition: true}},
		"a condition":        {StatusHint: generator.StatusHint{Conditions: []string{"Test"}}},
	} {
		if readiness.Static(kind, settings) {
			t.Errorf("a ConfigMap with %s is static, want that it is not", name)
		}
	}
}
