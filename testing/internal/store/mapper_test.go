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
			t.Errorf("%s: the kind is %s, want %s", resource, got, want)
		}
	}
	if singular, err := mapper.ResourceSingularizer("widgets"); err != nil || singular != "gizmo" {
		t.Errorf("the singular is %q (%v), want gizmo", singular, err)
	}
	if kinds, err := mapper.KindsFor(schema.GroupVersionResource{Resource: "widgets"}); err != nil || len(kinds) != 2 {
		t.Errorf("the kinds are %v (%v), want 2", kinds, err)
	}
}
