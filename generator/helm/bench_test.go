package helm_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"
)

// ofHundred is a chart of 100 objects, in the style of published charts.
func ofHundred() files {
	chart := files{
		"values.yaml": "image: {repository: registry.example.com/shop, tag: 1.2.3}\nreplicas: 2\nports: [80, 443, 9090]\n" +
			"resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}\nenv: {LOG: info, MODE: fast}\n",
		"values.schema.json": `{"type": "object", "properties": {"replicas": {"type": "integer", "minimum": 1}}}`,
		"templates/_helpers.tpl": `{{- define "demo.name" -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "demo.labels" -}}
app.kubernetes.io/name: {{ include "demo.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
`,
	}
	for i := range 20 {
		prefix := `
metadata:
  name: {{ include "demo.name" . }}-` + strconv.Itoa(i) + `
  namespace: {{ .Release.Namespace }}
  labels: {{- include "demo.labels" . | nindent 4 }}
`
		chart["templates/part"+strconv.Itoa(i)+".yaml"] = "apiVersion: v1\nkind: ServiceAccount" + prefix +
			"---\napiVersion: v1\nkind: ConfigMap" + prefix + `data:
  {{- range $key, $value := .Values.env }}
  {{ $key }}: {{ $value | quote }}
  {{- end }}
---
apiVersion: v1
kind: Secret` + prefix + `stringData:
  checksum: {{ toYaml .Values | sha256sum }}
---
apiVersion: v1
kind: Service` + prefix + `spec:
  selector: {{- include "demo.labels" . | nindent 4 }}
  ports:
  {{- range .Values.ports }}
  - {name: p{{ . }}, port: {{ . }}, targetPort: {{ add . 8000 }}}
  {{- end }}
---
apiVersion: apps/v1
kind: Deployment` + prefix + `spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {{- include "demo.labels" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "demo.labels" . | nindent 8 }}
    spec:
      containers:
      - name: main
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
        ports:
        {{- range .Values.ports }}
        - containerPort: {{ . }}
        {{- end }}
        {{- with .Values.resources }}
        resources: {{- toYaml . | nindent 10 }}
        {{- end }}
        env:
        {{- range $key, $value := .Values.env }}
        - name: {{ $key }}
          value: {{ tpl $value $ | quote }}
        {{- end }}
`
	}
	return chart
}

func loadBySDK(t testing.TB, f files) *v2.Chart {
	t.Helper()
	var buffered []*archive.BufferedFile
	for name, content := range f.withChart() {
		buffered = append(buffered, &archive.BufferedFile{Name: name, Data: []byte(content)})
	}
	chart, err := loader.LoadFiles(buffered)
	if err != nil {
		t.Fatal(err)
	}
	return chart
}

// renderBySDK does what the SDK does for a release, and parses the objects.
func renderBySDK(chart *v2.Chart, values map[string]any) ([]client.Object, error) {
	if err := chartutil.ProcessDependencies(chart, values); err != nil {
		return nil, err
	}
	top, err := commonutil.ToRenderValues(chart, values, common.ReleaseOptions{
		Name: "shop", Namespace: "north", Revision: 1, IsInstall: true,
	}, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Engine{}.RenderWithContext(context.Background(), chart, top)
	if err != nil {
		return nil, err
	}
	_, manifests, err := releaseutil.SortManifests(rendered, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	var objects []client.Object
	for _, manifest := range manifests {
		text, err := yaml.YAMLToJSON([]byte(manifest.Content))
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// BenchmarkRender compares a rendering with that of the SDK alone. The first line is for both, in turns, and has the
// ratio of their times.
func BenchmarkRender(b *testing.B) {
	made, chart := load(b, ofHundred(), helm.Options{}), loadBySDK(b, ofHundred())
	ctx, parameters := newCluster().context(b.Context()), generator.UnstructurableMap{"replicas": int64(3)}
	byEspalier := func() {
		objects, err := made.Generate(ctx, "north", "shop", parameters)
		if err != nil || len(objects) != 100 {
			b.Fatalf("there are %d objects (%v), want 100", len(objects), err)
		}
	}
	bySDK := func() {
		objects, err := renderBySDK(chart, parameters.ToUnstructured())
		if err != nil || len(objects) != 100 {
			b.Fatalf("there are %d objects (%v), want 100", len(objects), err)
		}
	}
	b.Run("both", func(b *testing.B) {
		var ours, theirs time.Duration
		for b.Loop() {
			start := time.Now()
			byEspalier()
			middle := time.Now()
			bySDK()
			ours, theirs = ours+middle.Sub(start), theirs+time.Since(middle)
		}
		b.ReportMetric(ours.Seconds()/theirs.Seconds(), "ratio")
		b.ReportMetric(1.1, "ratio-target")
	})
	b.Run("espalier", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			byEspalier()
		}
	})
	b.Run("sdk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			bySDK()
		}
	})
}

// BenchmarkMemory shows how much memory a generator keeps for a chart with a file of 1 MiB, and for each component that
// it has rendered.
func BenchmarkMemory(b *testing.B) {
	chart := lookingUp.and(files{"files/large": strings.Repeat("x", 1<<20)})
	for _, components := range []int{1, 1000} {
		b.Run(fmt.Sprintf("components=%d", components), func(b *testing.B) {
			var kept uint64
			for b.Loop() {
				before := heap()
				made, cluster := load(b, chart, helm.Options{}), newCluster()
				for i := range components {
					name := "n" + strconv.Itoa(i)
					if _, err := made.Generate(cluster.context(b.Context()), "north", name, values(b, "{}")); err != nil {
						b.Fatal(err)
					}
				}
				kept = max(heap(), before) - before
				runtime.KeepAlive(made)
			}
			b.ReportMetric(float64(kept), "B/generator")
			b.ReportMetric(float64(kept)/float64(components), "B/component")
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// However many components share a chart, there is one copy of it.
func TestMemoryIsBounded(t *testing.T) {
	const components = 200
	before := heap()
	made, cluster := load(t, lookingUp.and(files{"files/large": strings.Repeat("x", 1<<20)}), helm.Options{}), newCluster()
	for i := range components {
		_, err := made.Generate(cluster.context(t.Context()), "north", "n"+strconv.Itoa(i), values(t, "{}"))
		if err != nil {
			t.Fatal(err)
		}
	}
	if kept := max(heap(), before) - before; kept > 8<<20 {
		t.Errorf("want at most 8 MiB for %d components, got %d bytes", components, kept)
	}
	runtime.KeepAlive(made)
}
