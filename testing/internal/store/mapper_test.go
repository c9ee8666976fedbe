package store_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestMapperPrefers asks for resources that several groups or versions have, and by their singular names.
func TestMapperPrefers(t *testing.T) {
	t.Parallel()
	d := widgets()
	d.Spec.Names.Singular = "gizmo"
	mapper := newClient(t, d).RESTMapper()
	for resource, want := range map[string]schema.GroupVersionKind{
		"events":  {Version: "v1", Kind: "Event"},
		"widgets": appVersion.WithKind("Widget"),
		"gizmo":   appVersion.WithKind("Widget"),
	} {
		got, err := mapper.KindFor(schema.GroupVersionResource{Resource: resource})
		must(t, err)
		if got != want {
			t.Errorf("%s: got %s", resource, got)
		}
	}
	if singular, err := mapper.ResourceSingularizer("widgets"); err != nil || singular != "gizmo" {
		t.Errorf("got %q, %v", singular, err)
	}
	if kinds, err := mapper.KindsFor(schema.GroupVersionResource{Resource: "widgets"}); err != nil || len(kinds) != 2 {
		t.Errorf("got %v, %v", kinds, err)
	}
}
