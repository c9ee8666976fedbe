package helm_test

import (
	"encoding/json"
	"testing"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"
)

// FuzzValues renders a chart with any values. There are objects, or an error that names the chart.
func FuzzValues(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"name": "x"}`, `{"name": null, "nested": null}`, `{"nested": 1}`, `{"nested": {"a": null}}`,
		`{"left": 1}`, `{"left": {"x": {}}, "global": {"g": 1}}`, `{"global": {"g": {"a": 1}}, "left": {"global": {"g": 2}}}`,
		`{"tags": {"extra": "no"}}`, `{"right": {"enabled": "yes"}}`, `{"text": "{{ .Values.text }}"}`,
		`{"text": "{{ tpl .Values.text . }}"}`, `{"text": "{{ range until 9 }}{{ . }}{{ end }}"}`, `{"name": "\"\n---\n- a"}`,
		`{"text": "{{ define \"a\" }}{{ end }}"}`, `{"": {"": []}}`, `{"a.b": [1, 2.5, true, null]}`,
	} {
		f.Add(seed)
	}
	chart := rich()
	chart["templates/text.yaml"] = "apiVersion: v1\nkind: X\nmetadata: {name: x}\n" +
		"text: {{ tpl (.Values.text | default \"\") . }}\nall: {{ toJson .Values }}\n"
	made := load(f, chart, helm.Options{})
	f.Fuzz(func(t *testing.T, text string) {
		var parameters generator.UnstructurableMap
		if json.Unmarshal([]byte(text), &parameters) != nil {
			t.Skip()
		}
		objects, err := made.Generate(newCluster().context(t.Context()), "north", "shop", parameters)
		if (err == nil) == (len(objects) == 0) {
			t.Errorf("want objects or an error, got %d objects and %v", len(objects), err)
		}
	})
}

// FuzzChart loads and renders a chart with any files.
func FuzzChart(f *testing.F) {
	for _, seed := range [][4]string{
		{"", "a: b", "", "{{ .Values.a }}"},
		{"dependencies:\n- {name: one, version: 1.x}\n", "a: [", `{"type": "object"}`, "{{ range"},
		{"dependencies: [null]", "null", `{"$ref": "#"}`, "{{ include \"a\" . }}"},
		{"kubeVersion: '>1'\ntype: library", "a: {b: null}", `{"properties": 1}`, "a: b"},
		{"maintainers: [null]", "- a", "[]", "{{ .Chart.Maintainers }}"},
		{"annotations: {a: null}", "&a [*a]", "null", "apiVersion: v1\nkind: X"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, metadata, defaults, schema, template string) {
		chart := sub("one").in("charts/one").and(files{
			"Chart.yaml": chartYAML + metadata, "values.yaml": defaults, "values.schema.json": schema,
			"templates/a.yaml": template,
		})
		made, err := helm.NewGenerator(chart.folder(), "", helm.Options{})
		if err != nil {
			return
		}
		_, _ = made.Generate(newCluster().context(t.Context()), "north", "shop", generator.UnstructurableMap{})
	})
}
