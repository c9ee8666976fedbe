package helm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/generator/helm"
)

// sub is a chart that prints its value x.
func sub(name string) files {
	return files{
		"Chart.yaml":          "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
		"values.yaml":         "x: default\nexports:\n  shared:\n    imported: from " + name + "\n",
		"templates/main.yaml": configMap("{{ .Chart.Name }}", `  x: {{ .Values.x | quote }}`+"\n"+`  g: {{ (.Values.global).g | quote }}`),
	}
}

func depending(on string) string { return chartYAML + "dependencies:\n" + on }

func TestValues(t *testing.T) {
	t.Parallel()
	template := "  got: {{ toJson .Values | quote }}"
	for name, row := range map[string]struct{ defaults, parameters, want string }{
		"defaults":                {"a: 1\n", "{}", `{"a":1}`},
		"a parameter wins":        {"a: 1\n", "a: 2", `{"a":2}`},
		"maps are merged":         {"a: {b: 1, c: 2}\n", "a: {c: 3}", `{"a":{"b":1,"c":3}}`},
		"lists are replaced":      {"a: [1, 2]\n", "a: [3]", `{"a":[3]}`},
		"null removes a value":    {"a: 1\nb: 2\n", "a: null", `{"b":2}`},
		"null removes a map":      {"a: {b: 1}\nb: 2\n", "a: null", `{"b":2}`},
		"null removes in a map":   {"a: {b: 1, c: 2}\n", "a: {b: null}", `{"a":{"c":2}}`},
		"a scalar replaces a map": {"a: {b: 1}\n", "a: x", `{"a":"x"}`},
		"a list replaces a map":   {"a: {b: 1}\n", "a: [x]", `{"a":["x"]}`},
		"a map replaces a scalar": {"a: x\n", "a: {b: 1}", `{"a":{"b":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			generator := load(t, files{
				"values.yaml": row.defaults, "templates/main.yaml": configMap("main", template),
			}, helm.Options{})
			got := dataOf(t, generate(t, generator, newCluster(), row.parameters))["got"]
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("the value differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuiltins(t *testing.T) {
	t.Parallel()
	generator := load(t, files{
		"files/one.txt": "first\n",
		"templates/main.yaml": configMap("main", `
  release: {{ printf "%s %s %s" .Release.Name .Release.Namespace .Release.Service | quote }}
  history: {{ printf "%d %t %t" .Release.Revision .Release.IsInstall .Release.IsUpgrade | quote }}
  chart: {{ printf "%s %s %s" .Chart.Name .Chart.Version .Chart.AppVersion | quote }}
  template: {{ printf "%s %s" .Template.Name .Template.BasePath | quote }}
  version: {{ printf "%s %s %s" .Capabilities.KubeVersion.Version .Capabilities.KubeVersion.Major .Capabilities.KubeVersion.Minor | quote }}
  has: {{ printf "%t %t %t %t" (.Capabilities.APIVersions.Has "apps/v1") (.Capabilities.APIVersions.Has "apps/v1/Deployment") (.Capabilities.APIVersions.Has "v1/Secret") (.Capabilities.APIVersions.Has "batch/v1") | quote }}
  file: {{ .Files.Get "files/one.txt" | trim | quote }}
  dns: {{ getHostByName "localhost" | quote }}
`),
	}, helm.Options{})
	cluster := newCluster()
	want := map[string]any{
		"release": "shop north Helm", "history": "1 true false", "chart": "demo 1.2.3 4.5",
		"template": "demo/templates/main.yaml demo/templates", "version": "v1.34.2 1 34",
		"has": "true true true false", "file": "first", "dns": "",
	}
	if diff := cmp.Diff(want, dataOf(t, generate(t, generator, cluster, "{}"))); diff != "" {
		t.Errorf("the data differ (-want +got):\n%s", diff)
	}
	cluster.revision = 3
	if got := dataOf(t, generate(t, generator, cluster, "{}"))["history"]; got != "3 false true" {
		t.Errorf("want a history of 3 revisions, got %v", got)
	}
	if cluster.discovery.asked != 1 {
		t.Errorf("want 1 question what the cluster serves, got %d", cluster.discovery.asked)
	}
}

func TestSubcharts(t *testing.T) {
	t.Parallel()
	one := sub("one").in("charts/one")
	for name, row := range map[string]struct {
		chart      files
		parameters string
		want       []string
	}{
		"not declared": {one, "{}", []string{"one default "}},
		"values and globals": {
			one, "{one: {x: mine}, global: {g: all}}", []string{"one mine all"},
		},
		"packed": {
			files{"charts/one-1.0.0.tgz": packed(t, sub("one").in("one"))}, "{}", []string{"one default "},
		},
		"packed in a packed one": {
			files{"charts/two-1.0.0.tgz": packed(t, sub("two").and(files{
				"charts/one-1.0.0.tgz": packed(t, sub("one").in("one")),
			}).in("two"))}, "two: {one: {x: deep}}", []string{"one deep ", "two default "},
		},
		"condition": {
			one.and(files{"Chart.yaml": depending("- {name: one, version: 1.x, condition: one.enabled}\n")}),
			"one: {enabled: false}", nil,
		},
		"tags": {
			one.and(files{"Chart.yaml": depending("- {name: one, version: 1.x, tags: [extra]}\n")}),
			"tags: {extra: false}", nil,
		},
		"a condition wins over tags": {
			one.and(files{"Chart.yaml": depending("- {name: one, version: 1.x, tags: [extra], condition: one.enabled}\n")}),
			"{tags: {extra: false}, one: {enabled: true}}", []string{"one default "},
		},
		"alias": {
			one.and(files{"Chart.yaml": depending(
				"- {name: one, version: 1.x, alias: left}\n- {name: one, version: 1.x, alias: right}\n")}),
			"{left: {x: l}, right: {x: r}}", []string{"left l ", "right r "},
		},
		"requirements.yaml": {
			one.and(files{
				"Chart.yaml":        "apiVersion: v1\nname: demo\nversion: 1.0.0\n",
				"requirements.yaml": "dependencies:\n- {name: one, version: 1.x, condition: one.enabled}\n",
			}),
			"one: {enabled: false}", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			generator := load(t, row.chart, helm.Options{})
			// The second time shows what the first one has changed.
			for range 2 {
				var got []string
				for _, object := range generate(t, generator, newCluster(), row.parameters) {
					data := dataOf(t, []clientObject{object})
					got = append(got, object.GetName()+" "+text(data["x"])+" "+text(data["g"]))
				}
				if diff := cmp.Diff(row.want, got); diff != "" {
					t.Errorf("the objects differ (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestImportValues(t *testing.T) {
	t.Parallel()
	generator := load(t, files{
		"Chart.yaml": depending("- name: one\n  version: 1.x\n  import-values:\n  - shared\n" +
			"  - {child: exports.shared, parent: under}\n"),
		"templates/main.yaml": configMap("main", "  got: {{ .Values.imported }}, {{ .Values.under.imported }}"),
	}.and(files{"templates/none.yaml": "", "Chart.yaml": sub("one")["Chart.yaml"], "values.yaml": sub("one")["values.yaml"]}.
		in("charts/one")), helm.Options{})
	for range 2 {
		got := dataOf(t, generate(t, generator, newCluster(), "{}"))["got"]
		if got != "from one, from one" {
			t.Errorf("want the values of the sub-chart, got %v", got)
		}
	}
}

func TestLibraryChart(t *testing.T) {
	t.Parallel()
	library := files{
		"Chart.yaml":          "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n",
		"templates/_all.tpl":  `{{ define "lib.greeting" }}hello {{ . }}{{ end }}`,
		"templates/main.yaml": "not: {{ a template",
	}.in("charts/lib")
	generator := load(t, library.and(files{
		"templates/_own.tpl":  `{{ define "own" }}{{ include "lib.greeting" . | upper }}{{ end }}`,
		"templates/NOTES.txt": "Thank you.",
		"templates/main.yaml": configMap("main", `  got: {{ include "own" .Release.Name }}`),
	}), helm.Options{})
	if got := dataOf(t, generate(t, generator, newCluster(), "{}"))["got"]; got != "HELLO SHOP" {
		t.Errorf("want the text of the library, got %v", got)
	}
}

func TestOrderOfInstallation(t *testing.T) {
	t.Parallel()
	object := func(kind, name string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n"
	}
	generator := load(t, files{
		"templates/a.yaml": "---\n" + object("Zebra", "z") + "---\n\n--- \n# nothing\n---\n" + object("Service", "s2") +
			"---\n" + object("Service", "s1") + "---\n" + object("Ape", "a") + "--- # next\n" + object("Namespace", "ns"),
		"templates/b.yaml":   object("Service", "s0") + "---\n" + object("ConfigMap", "c"),
		"templates/c.yaml":   "{{ if false }}" + object("ConfigMap", "never") + "{{ end }}",
		"templates/.d.yaml":  object("ConfigMap", "hidden"),
		"templates/x/e.yaml": object("ConfigMap", "d"),
	}, helm.Options{})
	var got []string
	for _, object := range generate(t, generator, newCluster(), "{}") {
		got = append(got, object.GetName())
	}
	if diff := cmp.Diff([]string{"ns", "c", "d", "s2", "s1", "s0", "a", "z"}, got); diff != "" {
		t.Errorf("the order differs (-want +got):\n%s", diff)
	}
}

func TestNumbersStayIntegers(t *testing.T) {
	t.Parallel()
	generator := load(t, files{"templates/a.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: x}\n" +
		"spec: {big: 12345678901, small: 0.5}\n"}, helm.Options{})
	want := "apiVersion: v1\nkind: X\nmetadata:\n  name: x\nspec:\n  big: 12345678901\n  small: 0.5\n"
	if diff := cmp.Diff(want, rendered(t, generate(t, generator, newCluster(), "{}"))); diff != "" {
		t.Errorf("the objects differ (-want +got):\n%s", diff)
	}
}
