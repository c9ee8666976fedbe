package readiness_test

import (
	"testing"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/component/readiness"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhatLooksAtTheStatusIsNotStatic(t *testing.T) {
	object := func(kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	}
	balanced := object("Service")
	balanced.Object["spec"] = map[string]any{"type": "LoadBalancer"}
	for object, want := range map[*unstructured.Unstructured]bool{object("Service"): true, balanced: false, object("Pod"): false} {
		if got := readiness.Static(object, generator.Settings{}); got != want {
			t.Errorf("%v is static: %t, want %t", object.Object, got, want)
		}
	}
	kind := object("ConfigMap")
	if !readiness.Static(kind, generator.Settings{IgnoreFields: []string{"/data"}}) {
		t.Error("a ConfigMap with ignored fields is not static, want that it is")
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
