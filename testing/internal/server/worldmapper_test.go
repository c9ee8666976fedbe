package server_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// schemeKinds are the kinds of the scheme of the tests, and one of a Go type.
func schemeKinds() []schema.GroupKind {
	kinds := []schema.GroupKind{{Group: "nodot", Kind: "Planet"}}
	for gvk := range worldScheme().AllKnownTypes() {
		kinds = append(kinds, gvk.GroupKind())
	}
	return kinds
}

func TestWorldMapper(t *testing.T) {
	w := newWorld(t)
	d := widgets()
	d.Spec.Names.Singular = "gizmo"
	second := *d.Spec.Versions[0].DeepCopy()
	second.Name, second.Storage = "v2", false
	hidden := *second.DeepCopy()
	hidden.Name, hidden.Served = "v3", false
	d.Spec.Versions = append(d.Spec.Versions, second, hidden)
	w.give(d, typed("nodot", "v1", "Planet", "field"))
	mapper := w.world().Mapper(schemeKinds)
	for resource, want := range map[string]schema.GroupVersionKind{
		"events":      {Version: "v1", Kind: "Event"},
		"deployments": appsv1.SchemeGroupVersion.WithKind("Deployment"),
		"widgets":     {Group: "example.com", Version: "v1", Kind: "Widget"},
		"gizmo":       {Group: "example.com", Version: "v1", Kind: "Widget"},
		"planets":     {Group: "nodot", Version: "v1", Kind: "Planet"},
	} {
		got, err := mapper.KindFor(schema.GroupVersionResource{Resource: resource})
		if err != nil || got != want {
			t.Errorf("%s: the kind is %s, want %s; the error is %v", resource, got, want, err)
		}
		mapping, err := mapper.RESTMapping(want.GroupKind())
		if err != nil || mapping.GroupVersionKind != want {
			t.Errorf("%s: the mapping is %v, the error %v", resource, mapping, err)
		} else if root := mapping.Scope == apimeta.RESTScopeRoot; root != (resource == "planets") {
			t.Errorf("%s: the scope is %s", resource, mapping.Scope.Name())
		}
	}
	mappings, err := mapper.RESTMappings(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "v1", "v2", "v3")
	if err != nil || len(mappings) != 2 {
		t.Errorf("the mappings are %v, the error is %v", mappings, err)
	}
	fork := w.fork()
	fork.must(fork.Delete(fork.ctx, d))
	bare := fork.world()
	bare.Kinds = nil
	if _, ok := bare.Kind(schema.GroupKind{Group: "example.com", Kind: "Widget"}); ok {
		t.Error("a kind is served whose definition was deleted")
	}
}

func TestWorldResources(t *testing.T) {
	w := newWorld(t)
	w.create(widgets())
	var names []string
	for _, list := range w.world().Resources(schemeKinds()) {
		switch list.GroupVersion {
		case "example.com/v1", "nodot/v1", "apiextensions.k8s.io/v1":
			for _, r := range list.APIResources {
				names = append(names, list.GroupVersion+" "+r.Name)
			}
		}
	}
	want := []string{
		"apiextensions.k8s.io/v1 customresourcedefinitions", "apiextensions.k8s.io/v1 customresourcedefinitions/status",
		"example.com/v1 widgets", "example.com/v1 widgets/status", "nodot/v1 planets", "nodot/v1 planets/status",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the resources are %v, want %v", names, want)
	}
}

// BenchmarkWorldKind finds kinds in a world with twenty definitions.
func BenchmarkWorldKind(b *testing.B) {
	w := newWorld(b)
	for i := range 20 {
		d := widgets()
		name := "widget" + string(rune('a'+i))
		d.Name, d.Spec.Names.Plural, d.Spec.Names.Singular = name+"s.example.com", name+"s", name
		d.Spec.Names.Kind, d.Spec.Names.ListKind = "W"+name[1:], "W"+name[1:]+"List"
		w.give(d)
	}
	world := w.world()
	for _, kind := range []schema.GroupKind{
		{Kind: "ConfigMap"}, {Group: "example.com", Kind: "Widgett"}, {Group: "nodot", Kind: "Planet"},
	} {
		b.Run(kind.String(), func(b *testing.B) {
			for b.Loop() {
				if _, ok := world.Kind(kind); !ok {
					b.Fatal("the kind is not served")
				}
			}
		})
	}
}
