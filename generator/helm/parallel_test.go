package helm_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/generator/helm"
)

// rich has all that the SDK changes when it renders a chart.
func rich() files {
	return files{
		"Chart.yaml": chartYAML + `keywords: [b, a]
annotations: {a: b}
dependencies:
- {name: one, version: 1.x, alias: left, tags: [extra], import-values: [shared]}
- {name: one, version: 1.x, alias: right, condition: right.enabled, import-values: [{child: exports.shared, parent: under}]}
`,
		"values.yaml":        "name: default\nnested: {a: 1, b: [1, 2]}\n",
		"values.schema.json": `{"properties": {"name": {"type": "string"}}}`,
		"crds/a.yaml":        "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
		"files/a.txt":        "text",
		"templates/_a.tpl":   `{{ define "a" }}{{ .Values.name }}{{ end }}`,
		"templates/main.yaml": configMap("main", `
  name: {{ include "a" . }}
  set: {{ set .Values.nested "c" .Values.name | toJson | quote }}
  chart: {{ sortAlpha .Chart.Keywords | toJson | quote }}
  imported: {{ .Values.imported }}
  tpl: {{ tpl "{{ .Values.name }}" . }}
  file: {{ .Files.Get "files/a.txt" }}
  served: {{ .Capabilities.APIVersions | len }}
`),
	}.and(sub("one").in("charts/one"))
}

func TestRenderingsShareAChartThatStaysAsItIs(t *testing.T) {
	t.Parallel()
	generator := load(t, rich(), helm.Options{})
	before := helm.Fingerprint(generator)
	want := rendered(t, generate(t, load(t, rich(), helm.Options{}), newCluster(), "name: first"))
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			cluster, name := newCluster(), "n"+strconv.Itoa(i)
			cluster.uid = types.UID(name)
			text := fmt.Sprintf("{name: %s, right: {enabled: %t}}", name, i%2 == 0)
			for range 3 {
				objects := generate(t, generator, cluster, text)
				if len(objects) != 3+(i+1)%2 {
					t.Errorf("want another number of objects than %d", len(objects))
				}
				var names []any
				for _, object := range objects {
					if object.GetName() == "main" {
						data := dataOf(t, []clientObject{object})
						names = []any{data["name"], data["tpl"], data["set"]}
					}
				}
				if diff := cmp.Diff([]any{name, name, `{"a":1,"b":[1,2],"c":"` + name + `"}`}, names); diff != "" {
					t.Errorf("the names differ (-want +got):\n%s", diff)
				}
				inputs(t, generator, cluster)
				for _, object := range objects {
					object.SetLabels(map[string]string{"changed": name})
				}
			}
		})
	}
	group.Wait()
	if diff := cmp.Diff(before, helm.Fingerprint(generator)); diff != "" {
		t.Errorf("want the chart to stay as it is: %s", diff)
	}
	if diff := cmp.Diff(want, rendered(t, generate(t, generator, newCluster(), "name: first"))); diff != "" {
		t.Errorf("the objects differ (-want +got):\n%s", diff)
	}
}
