package registry_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/testing/internal/registry"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestFromDefinitionServedVersions shows which versions a kind has: those that are served, the stored one first.
func TestFromDefinitionServedVersions(t *testing.T) {
	t.Parallel()
	crd := resources.CRD()
	stored := crd.Spec.Versions[0]
	older, unserved := *stored.DeepCopy(), *stored.DeepCopy()
	older.Name, older.Storage, older.Subresources = "v1alpha1", false, nil
	unserved.Name, unserved.Storage, unserved.Served = "v1alpha0", false, false
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{unserved, older, stored}

	defined, err := registry.FromDefinition(crd)
	if err != nil {
		t.Fatal(err)
	}
	if defined.Resource != "widgets" || defined.Kind.Kind != "Widget" || defined.Scope != registry.Namespaced {
		t.Errorf("the kind is %v with the resource %q and the scope %v, want the namespaced widgets", defined.Kind,
			defined.Resource, defined.Scope)
	}
	got := map[string]bool{}
	var order []string
	for _, version := range defined.Versions {
		order = append(order, version.Name)
		got[version.Name] = version.HasStatus()
	}
	if diff := cmp.Diff([]string{stored.Name, "v1alpha1"}, order); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{stored.Name: true, "v1alpha1": false}, got); diff != "" {
		t.Errorf("status subresources (-want +got):\n%s", diff)
	}
}

// TestFromDefinitionCompilesOnce shows that a definition is compiled again only if its spec has changed.
func TestFromDefinitionCompilesOnce(t *testing.T) {
	t.Parallel()
	definition := definitionFrom(t, "gadgets")
	strategy := strategyOf(t, definition)
	again := definition.DeepCopy()
	again.Labels = map[string]string{"a": "b"}
	if strategyOf(t, again) != strategy {
		t.Error("the same spec was compiled twice, want once")
	}
	addProperty(root(again), "more", `{type: string}`)
	if strategyOf(t, again) == strategy {
		t.Error("a changed spec was not compiled, want it to be")
	}
	if strategyOf(t, definition) != strategy {
		t.Error("the first spec was compiled twice, want once")
	}
}

// TestFromDefinitionWithoutServedVersion shows that this is no error, as on an API server.
func TestFromDefinitionWithoutServedVersion(t *testing.T) {
	t.Parallel()
	crd := resources.CRD()
	crd.Spec.Versions[0].Served = false
	defined, err := registry.FromDefinition(crd)
	if err != nil || len(defined.Versions) > 0 {
		t.Errorf("the versions are %v (%v), want none", defined.Versions, err)
	}
}

// TestFromDefinitionError shows that the error names the definition and the path of the field.
func TestFromDefinitionError(t *testing.T) {
	t.Parallel()
	crd := resources.CRD()
	addProperty(root(crd), "spec", `{type: object, properties: {size: {}}}`)
	_, err := registry.FromDefinition(crd)
	const want = `CustomResourceDefinition widgets.test.espalier.dev: ` +
		`spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].type: Required value`
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s...", err, want)
	}
}
