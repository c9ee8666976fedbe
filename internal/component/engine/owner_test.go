package engine_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/component/engine"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestOwner(t *testing.T) {
	kind := schema.GroupKind{Group: "platform.example.com", Kind: "Platform"}
	text := engine.OwnerText(kind, types.NamespacedName{Namespace: "team", Name: "main"}, "", "1-2")
	if want := "Platform.platform.example.com/team/main/1-2"; text != want {
		t.Errorf("the owner is %q, not %q", text, want)
	}
	id := engine.OwnerID(text)
	if len(id) != 52 || len(validation.IsValidLabelValue(id)) > 0 {
		t.Errorf("the ID is %q, want a label value of 52 characters", id)
	}
	if got, want := engine.OwnerText(kind, types.NamespacedName{Namespace: "team", Name: "main"}, "east", "1-2"), "Platform.platform.example.com/team/main/east/1-2"; got != want {
		t.Errorf("in another cluster the owner is %q, not %q", got, want)
	}
	others := []string{
		engine.OwnerText(kind, types.NamespacedName{Namespace: "team", Name: "main"}, "east", "1-2"),
		engine.OwnerText(kind, types.NamespacedName{Namespace: "team", Name: "main"}, "west", "1-2"),
		engine.OwnerText(kind, types.NamespacedName{Namespace: "team", Name: "main"}, "", "1-3"),
		engine.OwnerText(schema.GroupKind{Group: kind.Group, Kind: "Stage"}, types.NamespacedName{Namespace: "team", Name: "main"}, "", "1-2"),
	}
	for _, other := range others {
		if engine.OwnerID(other) == id {
			t.Errorf("%q has the ID of %q, want another", other, text)
		}
	}
	if got := engine.OwnerText(schema.GroupKind{Kind: "ConfigMap"}, types.NamespacedName{Name: "main"}, "", "1"); got != "ConfigMap//main/1" {
		t.Errorf(`the owner without group and namespace is %q, want "ConfigMap//main/1"`, got)
	}
}
