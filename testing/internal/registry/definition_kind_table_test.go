package registry_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

type crd = apiextensionsv1.CustomResourceDefinition

// definitionRows change a good definition.
var definitionRows = map[string]func(*crd){
	"good":            func(*crd) {},
	"good at cluster": func(d *crd) { d.Spec.Scope = apiextensionsv1.ClusterScoped },
	"two versions": func(d *crd) {
		older := *d.Spec.Versions[0].DeepCopy()
		older.Name, older.Storage = "v1beta1", false
		older.Schema.OpenAPIV3Schema.Description = "older"
		d.Spec.Versions = append(d.Spec.Versions, older)
	},
	"label":        func(d *crd) { d.Labels = map[string]string{"a": "b c"} },
	"no schema":    func(d *crd) { d.Spec.Versions[0].Schema = nil },
	"empty schema": func(d *crd) { d.Spec.Versions[0].Schema.OpenAPIV3Schema = nil },
}

// invalidRows are schemas of one property that an API server refuses. Nothing is validated with them that it does not
// say.
var invalidRows = []struct {
	property string
	value    any
	// refused says what is wrong with an object that has the value, nothing if the object is stored.
	refused string
}{
	{`{type: string, x-kubernetes-validations: [{rule: self ==}]}`, "a", "spec.x"},
	{`{type: string, x-kubernetes-validations: [{rule: self + 1 == 2}]}`, "a", "spec.x"},
	{`{type: odd}`, "a", "spec.x"},
	{`{type: string, default: 1}`, nil, "spec.x"},
	{`{type: object, properties: {a: {type: string}}, default: {b: c}}`, nil, ""},
	{`{type: array, items: {type: object}, x-kubernetes-list-type: map}`, []any{map[string]any{}}, ""},
	{`{type: string, x-kubernetes-list-type: set}`, "a", ""},
	{`{type: object, x-kubernetes-map-type: odd}`, map[string]any{}, ""},
}

// updateRows change a good definition that is established.
var updateRows = map[string]func(*crd){
	"nothing": func(*crd) {},
	"label":   func(d *crd) { d.Labels = map[string]string{"a": "b"} },
	"schema":  func(d *crd) { addProperty(root(d), "x", `{type: string}`) },
	"status":  func(d *crd) { d.Status = apiextensionsv1.CustomResourceDefinitionStatus{} },
	"scope":   func(d *crd) { d.Spec.Scope = apiextensionsv1.ClusterScoped },
	"kind":    func(d *crd) { d.Spec.Names.Kind = "Other" },
	"group":   func(d *crd) { d.Spec.Group = "other.espalier.dev" },
	"plural":  func(d *crd) { d.Spec.Names.Plural = "others" },
	"another stored version": func(d *crd) {
		newer := *d.Spec.Versions[0].DeepCopy()
		newer.Name, newer.Schema.OpenAPIV3Schema.Description = "v2", "newer"
		d.Spec.Versions[0].Storage = false
		d.Spec.Versions = append(d.Spec.Versions, newer)
	},
}

// changed returns the definition of a row.
func changed(t testing.TB, change func(*crd)) *crd {
	t.Helper()
	definition := definitionFrom(t, "ratchets")
	definition.Name = "checks.definitions.espalier.dev"
	definition.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "checks", Kind: "Check"}
	change(definition)
	return definition
}

func root(d *crd) *apiextensionsv1.JSONSchemaProps { return d.Spec.Versions[0].Schema.OpenAPIV3Schema }

func addProperty(s *apiextensionsv1.JSONSchemaProps, name, property string) {
	var added apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict([]byte(property), &added); err != nil {
		panic(err)
	}
	s.Properties[name] = added
}
