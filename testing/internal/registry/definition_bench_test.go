package registry_test

import (
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/testing/internal/registry"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// smallGadget is a custom resource as tables have them.
func smallGadget(t testing.TB, s registry.Strategy) *unstructured.Unstructured {
	t.Helper()
	obj := s.New().(*unstructured.Unstructured)
	obj.SetNamespace("default")
	obj.SetName("name")
	obj.SetUID("uid")
	obj.SetResourceVersion("1")
	obj.SetCreationTimestamp(metav1.Unix(1, 0))
	return withContent(t, obj, `spec: {owner: me, mode: slow, ports: [{number: 1}], groups: [{name: a}]}`)
}

// BenchmarkCreateCustomResource is what a store pays for a create, with a copy of the object.
func BenchmarkCreateCustomResource(b *testing.B) {
	for _, name := range []string{"ratchets", "gadgets"} {
		b.Run(name, func(b *testing.B) {
			s := strategyOf(b, definitionFrom(b, name))
			obj := smallGadget(b, s)
			for b.Loop() {
				created := obj.DeepCopy()
				s.PrepareForCreate(created)
				if errs := s.Validate(created); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}

// BenchmarkUpdateCustomResource is what a store pays for an update, with a copy of the object.
func BenchmarkUpdateCustomResource(b *testing.B) {
	for _, name := range []string{"ratchets", "gadgets"} {
		b.Run(name, func(b *testing.B) {
			s := strategyOf(b, definitionFrom(b, name))
			old := smallGadget(b, s)
			s.PrepareForCreate(old)
			next := withContent(b, old, `spec: {owner: you, mode: slow, ports: [{number: 1}], groups: [{name: a}]}`)
			for b.Loop() {
				updated := next.DeepCopy()
				s.PrepareForUpdate(updated, old, "")
				if errs := s.ValidateUpdate(updated, old, ""); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}

// BenchmarkCompileDefinition compiles a definition that was not compiled before.
func BenchmarkCompileDefinition(b *testing.B) {
	for _, name := range []string{"ratchets", "gadgets"} {
		b.Run(name, func(b *testing.B) {
			definition := definitionFrom(b, name)
			n := 0
			for b.Loop() {
				n++
				definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = fmt.Sprint(name, n)
				compile(b, definition)
			}
		})
	}
}

// BenchmarkCompileDefinitionAgain is what each further row of a table pays.
func BenchmarkCompileDefinitionAgain(b *testing.B) {
	definition := definitionFrom(b, "gadgets")
	for b.Loop() {
		compile(b, definition)
	}
}

func compile(b *testing.B, definition *apiextensionsv1.CustomResourceDefinition) {
	b.Helper()
	if _, err := registry.FromDefinition(definition); err != nil {
		b.Fatal(err)
	}
}
