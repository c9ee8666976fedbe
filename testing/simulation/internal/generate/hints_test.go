package generate_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-dev/espalier/testing/simulation/internal/generate"
)

func TestHints(t *testing.T) {
	t.Parallel()
	definition := defined(t, `
type: object
required: [account]
properties:
  account: {type: string, minLength: 1}
  constant: {type: integer}
  never: {type: string}
  impossible: {type: string, pattern: 'a\bb'}
  settings: {type: object, properties: {a: {type: string}}}
  ports: {type: array, items: {type: object, properties: {name: {type: string}}}}
  labels: {type: object, additionalProperties: {type: string}}
`)
	g, err := generate.New(definition, "v1", generate.Hints{
		".spec.account":       {"default", "other"},
		".spec.constant":      {3},
		".spec.never":         {},
		".spec.impossible":    {},
		".spec.settings":      {map[string]string{"a": "1"}, map[string]string{}},
		".spec.ports[*].name": {"http", "https"},
		".spec.labels[*]":     {"yes", "no"},
		".spec.labels[key]":   {"a", "b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	r := source(1)
	obj := draw(t, g, r)
	for range 300 {
		if constant, _, _ := unstructured.NestedInt64(obj.Object, "spec", "constant"); constant != 3 {
			t.Fatalf("the constant is not there: %s", encode(obj))
		}
		for path, value := range leaves(obj.Object["spec"], "", nil) {
			for _, index := range "0123456789" {
				path = strings.ReplaceAll(path, string(index), "")
			}
			seen[path+" "+encode(value)] = true
		}
		obj = g.Edit(r, obj)
	}
	for _, want := range []string{
		`.account "default"`, `.account "other"`, `.constant 3`, `.settings.a "1"`, `.ports[].name "http"`,
		`.ports[].name "https"`, `.labels.a "yes"`, `.labels.a "no"`,
		`.labels.b "yes"`, `.labels.b "no"`,
	} {
		if !seen[want] {
			t.Errorf("%s is not seen", want)
		}
		delete(seen, want)
	}
	if len(seen) > 0 {
		t.Errorf("others are seen: %v", seen)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, schema, version string
		hints                 generate.Hints
		want                  []string
	}{
		{"version", `{type: object}`, "v2", nil, []string{`version "v2" is not served`}},
		{"definition", `{type: thing}`, "v1", nil, []string{"properties[spec].type", "Unsupported value"}},
		{"unknown hint", `{type: object}`, "v1", generate.Hints{".spec.no": {1}},
			[]string{"hint for .spec.no: there is no such field"}},
		{"unencoded hint", `{type: object}`, "v1", generate.Hints{".spec": {func() {}}},
			[]string{"hint for .spec", "unsupported type"}},
		{"invalid hint", `{type: object, properties: {a: {type: string, maxLength: 2}}}`, "v1",
			generate.Hints{".spec.a": {"abc"}}, []string{"hint for .spec.a: abc: ", "may not be more than 2"}},
		{"key", `{type: object, additionalProperties: {type: string}}`, "v1", generate.Hints{".spec[key]": {1}},
			[]string{"hint for .spec[key]: 1 is no string"}},
		{"pattern without words", `{type: object, properties: {a: {type: string, pattern: 'a\bb'}}}`, "v1", nil,
			[]string{".spec.a: no valid value", "should match"}},
		{"pattern without short words",
			`{type: object, properties: {a: {type: array, items: {type: string, pattern: '^a{5}$', maxLength: 3}}}}`, "v1",
			nil, []string{`.spec.a[*]: pattern "^a{5}$": there is no word of an allowed length`}},
		{"contradiction",
			`{type: object, required: [a], properties: {a: {type: integer}},
			allOf: [{properties: {a: {minimum: 5}}}, {properties: {a: {maximum: 3}}}]}`, "v1", nil, []string{".spec: no valid value", "by Invalid value", "must validate all the schemas (allOf)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := generate.New(defined(t, test.schema), test.version, test.hints)
			if err == nil {
				t.Fatal("there is no error")
			}
			for _, want := range append(test.want, "CustomResourceDefinition keywords.example.com") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, without %q", err, want)
				}
			}
		})
	}
}

// TestRefused has a rule that is never met by chance.
func TestRefused(t *testing.T) {
	t.Parallel()
	definition := defined(t, `
type: object
required: [a]
properties: {a: {type: string, maxLength: 20}}
x-kubernetes-validations: [{rule: "self.a == 'some' + 'thing' + 'else'", message: a is special}]
`)
	g, err := generate.New(definition, "v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Resource(source(1), "default", "one")
	if err == nil || !strings.Contains(err.Error(), "refused most often by spec: Invalid value: a is special") ||
		!strings.Contains(err.Error(), "Keyword one") {
		t.Errorf("the error is %v", err)
	}
	hinted, err := generate.New(definition, "v1", generate.Hints{".spec.a": {"somethingelse"}})
	if err != nil {
		t.Fatal(err)
	}
	draw(t, hinted, source(1))
}
