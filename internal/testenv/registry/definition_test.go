package registry_test

import (
	"testing"

	"github.com/espalier-dev/espalier/internal/testenv/registry"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

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
		t.Errorf("got %v %q with scope %v", defined.Kind, defined.Resource, defined.Scope)
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
