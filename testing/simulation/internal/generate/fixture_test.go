package generate_test

import (
	"math/rand/v2"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/testing/simulation/internal/generate"
)

// definitions are the files of those that the tests draw from, by their kinds.
var definitions = map[string]string{
	"Keyword":  "testdata/keywords.yaml",
	"Gadget":   "testdata/gadgets.yaml",
	"Platform": "../../../../examples/platform/config/crd/platform.example.com_platforms.yaml",
	"Shop":     "../../../../examples/shop/config/crd/shop.example.com_shops.yaml",
}

func read(t testing.TB, kind string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	encoded, err := os.ReadFile(definitions[kind])
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(encoded, definition); err != nil {
		t.Fatal(err)
	}
	return definition
}

// generator returns the generator of the first version of a definition.
func generator(t testing.TB, kind string) *generate.Generator {
	t.Helper()
	definition := read(t, kind)
	g, err := generate.New(definition, definition.Spec.Versions[0].Name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// defined returns a definition with a schema of spec.
func defined(t testing.TB, schema string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definition := read(t, "Keyword")
	var spec apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict([]byte(schema), &spec); err != nil {
		t.Fatal(err)
	}
	definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	return definition
}

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func draw(t testing.TB, g *generate.Generator, r *rand.Rand) *unstructured.Unstructured {
	t.Helper()
	obj, err := g.Resource(r, "default", "one")
	if err != nil {
		t.Fatal(err)
	}
	return obj
}
