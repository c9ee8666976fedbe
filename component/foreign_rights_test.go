package component_test

import (
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The derived role has what tells whether others use what goes with an object of the component.
func TestRightsToFindOthers(t *testing.T) {
	const all, widgets = "[* *] [list]", "[test.espalier.dev widgets] [list create]"
	definition := resources.CRD()
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	for name, test := range map[string]struct {
		dependent client.Object
		want      string
	}{
		"a namespace":          {&corev1.Namespace{}, all},
		"one with its kind":    {namespaceOf("app"), all},
		"one that is kept":     {annotated(namespaceOf("app"), generator.AnnotationDeletePolicy, "orphan"), ""},
		"one with all in it":   {annotated(namespaceOf("app"), generator.AnnotationForeignInstances, "ignore"), ""},
		"a type":               {definition, widgets},
		"neither of both":      {&corev1.ConfigMap{}, ""},
		"a mistaken namespace": {annotated(namespaceOf("app"), generator.AnnotationDeletePolicy, "?"), all},
	} {
		root := component.NewComponentRoot(componentPrefix, resources.AssemblyGenerator(), assemblyOptions{
			Dependents: []client.Object{test.dependent},
		})
		rules, err := root.Describe().PolicyRules(assemblyScheme, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, rule := range rules {
			if r := fmt.Sprint([]string{rule.APIGroups[0], rule.Resources[0]}, rule.Verbs); r == all || r == widgets {
				got += r
			}
		}
		if got != test.want {
			t.Errorf("%s: the rights are %q, want %q", name, got, test.want)
		}
	}
}
