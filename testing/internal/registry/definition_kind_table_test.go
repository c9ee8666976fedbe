package registry_test

import (
	"fmt"
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
	"name":            func(d *crd) { d.Name = "other.definitions.espalier.dev" },
	"label":           func(d *crd) { d.Labels = map[string]string{"a": "b c"} },
	"no group":        func(d *crd) { d.Spec.Group = "" },
	"short group":     func(d *crd) { d.Name, d.Spec.Group = "checks.dev", "dev" },
	"bad group":       func(d *crd) { d.Spec.Group = "A.dev" },
	"no scope":        func(d *crd) { d.Spec.Scope = "" },
	"bad scope":       func(d *crd) { d.Spec.Scope = "Odd" },
	"no kind":         func(d *crd) { d.Spec.Names.Kind = "" },
	"bad kind":        func(d *crd) { d.Spec.Names.Kind = "A_b" },
	"no plural":       func(d *crd) { d.Spec.Names.Plural = "" },
	"bad plural":      func(d *crd) { d.Spec.Names.Plural = "Checks" },
	"bad short names": func(d *crd) { d.Spec.Names.ShortNames = []string{"c", "C"} },
	"bad categories":  func(d *crd) { d.Spec.Names.Categories = []string{"All"} },
	"same list kind":  func(d *crd) { d.Spec.Names.ListKind = "Check" },
	"unknown fields":  func(d *crd) { d.Spec.PreserveUnknownFields = true },
	"no version":      func(d *crd) { d.Spec.Versions = nil },
	"bad version":     func(d *crd) { d.Spec.Versions[0].Name = "1" },
	"not stored":      func(d *crd) { d.Spec.Versions[0].Storage = false },
	"equal versions": func(d *crd) {
		again := *d.Spec.Versions[0].DeepCopy()
		again.Storage, again.Schema.OpenAPIV3Schema.Description = false, "again"
		d.Spec.Versions = append(d.Spec.Versions, again)
	},
	"no schema":        func(d *crd) { d.Spec.Versions[0].Schema = nil },
	"empty schema":     func(d *crd) { d.Spec.Versions[0].Schema.OpenAPIV3Schema = nil },
	"type of the root": func(d *crd) { root(d).Type = "string" },
	"nullable root":    func(d *crd) { root(d).Nullable = true },
	"maximum of the root": func(d *crd) {
		maximum := int64(3)
		root(d).MaxProperties = &maximum
	},
	"nullable root without status": func(d *crd) {
		root(d).Nullable = true
		d.Spec.Versions[0].Subresources = nil
	},
}

// propertyRows are schemas of one property, which is added to a good definition.
var propertyRows = map[string]string{
	"no type":                   `{}`,
	"unknown type":              `{type: odd}`,
	"array without items":       `{type: array}`,
	"unique items":              `{type: array, items: {type: string}, uniqueItems: true}`,
	"reference":                 `{type: string, $ref: "#/x"}`,
	"pattern properties":        `{type: object, patternProperties: {x: {type: string}}}`,
	"definitions":               `{type: object, definitions: {x: {type: string}}}`,
	"id":                        `{type: object, id: x}`,
	"properties and additional": `{type: object, properties: {a: {type: string}}, additionalProperties: {type: string}}`,
	"only value validation":     `{type: object, anyOf: [{required: [a]}, {properties: {y: {minimum: 1}}}]}`,
	"unknown fields not kept":   `{type: object, x-kubernetes-preserve-unknown-fields: false}`,
	"embedded without type":     `{x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`,
	"bad pattern":               `{type: string, pattern: "("}`,
	"default of another type":   `{type: string, default: 1}`,
	"default with an unknown field": `
{type: object, properties: {a: {type: string}}, default: {b: c}}`,
	"default that breaks a rule": `
{type: string, maxLength: 5, default: a, x-kubernetes-validations: [{rule: self != 'a'}]}`,
	"list type of a string":  `{type: string, x-kubernetes-list-type: set}`,
	"list type without type": `{x-kubernetes-list-type: set}`,
	"unknown list type":      `{type: array, items: {type: string}, x-kubernetes-list-type: odd}`,
	"map type of a string":   `{type: string, x-kubernetes-map-type: atomic}`,
	"unknown map type":       `{type: object, x-kubernetes-map-type: odd}`,
	"keys without list type": `
{type: array, items: {type: object, required: [a], properties: {a: {type: string}}}, x-kubernetes-list-map-keys: [a]}`,
	"keys of a set": `
{type: array, items: {type: string}, x-kubernetes-list-type: set, x-kubernetes-list-map-keys: [a]}`,
	"map without keys": `
{type: array, items: {type: object, properties: {a: {type: string}}}, x-kubernetes-list-type: map}`,
	"map without items": `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a]}`,
	"map of strings": `
{type: array, items: {type: string}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a]}`,
	"map with an optional key": `
type: array
items: {type: object, properties: {a: {type: string}}}
x-kubernetes-list-type: map
x-kubernetes-list-map-keys: [a]`,
	"map with a bad key": `
type: array
items: {type: object, required: [a], properties: {a: {type: array, nullable: true, items: {type: string}}}}
x-kubernetes-list-type: map
x-kubernetes-list-map-keys: [a]`,
	"map with unknown and equal keys": `
type: array
items: {type: object, required: [a], properties: {a: {type: string}}}
x-kubernetes-list-type: map
x-kubernetes-list-map-keys: [a, a, b]`,
	"set of objects": `
{type: array, items: {type: object, properties: {a: {type: string}}}, x-kubernetes-list-type: set}`,
	"set of sets": `
type: array
items: {type: array, items: {type: string}, x-kubernetes-list-type: set}
x-kubernetes-list-type: set`,
	"nullable items of a set":     `{type: array, items: {type: string, nullable: true}, x-kubernetes-list-type: set}`,
	"rule that does not parse":    `{type: string, x-kubernetes-validations: [{rule: self ==}]}`,
	"rule with the wrong type":    `{type: string, x-kubernetes-validations: [{rule: self + 1 == 2}]}`,
	"rule that is no condition":   `{type: string, x-kubernetes-validations: [{rule: self}]}`,
	"rule about an unknown field": `{type: object, x-kubernetes-validations: [{rule: self.odd == 1}]}`,
	"rule without text":           `{type: string, x-kubernetes-validations: [{rule: " "}]}`,
	"bad messages": `
{type: string, x-kubernetes-validations: [{rule: "true", message: " "}, {rule: "true", message: "a\nb"}]}`,
	"lines without message": `{type: string, x-kubernetes-validations: [{rule: "true ||\nfalse"}]}`,
	"bad message expressions": `
{type: string, x-kubernetes-validations: [{rule: "true", messageExpression: "1"}]}`,
	"empty message expression": `
{type: string, x-kubernetes-validations: [{rule: "true", messageExpression: " "}]}`,
	"bad reason":     `{type: string, x-kubernetes-validations: [{rule: "true", reason: Odd}]}`,
	"bad field path": `{type: object, x-kubernetes-validations: [{rule: "true", fieldPath: .odd}]}`,
	"field path": `
{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: "true", fieldPath: .a}]}`,
	"optional old value unused": `{type: string, x-kubernetes-validations: [{rule: "true", optionalOldSelf: true}]}`,
	"old value in a list": `
{type: array, maxItems: 3, items: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf}]}}`,
	"old value in a list with keys": `
type: array
maxItems: 3
x-kubernetes-list-type: map
x-kubernetes-list-map-keys: [a]
items:
  type: object
  required: [a]
  properties: {a: {type: integer}}
  x-kubernetes-validations: [{rule: self.a == oldSelf.a}]`,
	"expensive rule": `
{type: array, items: {type: string, x-kubernetes-validations: [{rule: self.contains('a')}]}}`,
	"rule that is bounded": `
{type: array, maxItems: 5, items: {type: string, maxLength: 9, x-kubernetes-validations: [{rule: self.contains('a')}]}}`,
	"expensive by nesting": `
type: object
additionalProperties:
  {type: array, items: {type: string, x-kubernetes-validations: [{rule: self == 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'}]}}`,
	"expensive message expression": `
{type: integer, x-kubernetes-validations: [{rule: "true", messageExpression: string(self)}]}`,
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
	"stored version": func(d *crd) {
		older := *d.Spec.Versions[0].DeepCopy()
		older.Name, older.Storage = "v1beta1", false
		older.Schema.OpenAPIV3Schema.Description = "older"
		d.Spec.Versions[0].Name = "v2"
		d.Spec.Versions = append(d.Spec.Versions, older)
	},
	"another stored version": func(d *crd) {
		newer := *d.Spec.Versions[0].DeepCopy()
		newer.Name, newer.Schema.OpenAPIV3Schema.Description = "v2", "newer"
		d.Spec.Versions[0].Storage = false
		d.Spec.Versions = append(d.Spec.Versions, newer)
	},
	"bad schema": func(d *crd) { addProperty(root(d), "x", `{}`) },
}

func init() {
	for row, property := range propertyRows {
		definitionRows[row] = func(d *crd) { addProperty(root(d), "x", property) }
	}
	definitionRows["expensive rules"] = func(d *crd) {
		for i := range 4 {
			addProperty(root(d), fmt.Sprintf("x%d", i), `
{type: array, maxItems: 100, items: {type: string, x-kubernetes-validations: [{rule: self.contains('a')}]}}`)
		}
	}
	definitionRows["default of metadata"] = func(d *crd) {
		addProperty(root(d), "metadata", `{type: object, properties: {name: {type: string, default: a}}}`)
	}
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
