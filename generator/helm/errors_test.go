package helm_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/espalier-dev/espalier/generator/helm"
)

// errorOfHelm returns the error of the SDK for a chart.
func errorOfHelm(t *testing.T, f files) string {
	t.Helper()
	var buffered []*archive.BufferedFile
	for name, content := range f.withChart() {
		buffered = append(buffered, &archive.BufferedFile{Name: name, Data: []byte(content)})
	}
	chart, err := loader.LoadFiles(buffered)
	if err != nil {
		t.Fatal(err)
	}
	top, err := commonutil.ToRenderValues(chart, nil, common.ReleaseOptions{Name: "shop", Namespace: "north"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = engine.Render(chart, top); err == nil {
		t.Fatal("want an error")
	}
	return err.Error()
}

var (
	columnOfHelm = regexp.MustCompile(`(\.(?:yaml|tpl):\d+):\d+`)
	spaces       = regexp.MustCompile(`\s+`)
)

// Errors are those of Helm on one line, but for the column.
func TestErrorsAreThoseOfHelm(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{{ fail "no" }}`, "\n\n  a: {{ .Values.a.b | quote }}", `{{ nosuch .Values }}`, `{{ if }}`, `{{ end }}`,
		`{{ if true }}`, `{{ $x }}`, `{{ "a }}`, `{{ .Values.a.b.c }}`, `{{ required "name is needed" .Values.name }}`,
		`{{ include "b" . | nindent 4 }}`, `{{ toYaml .Values.a.b | indent 4 }}`, `{{ index .Values.l 7 }}`,
		`{{ upper 1 }}`, `{{ repeat "a" "b" }}`, `{{ len 3 }}`, `{{ template "none" . }}`, `{{ include "fails" . }}`,
		`{{ include "deep" . | quote }}`, `{{ include "nil" . | indent 3 | trim }}`, `{{ tpl "{{ fail \"x\" }}" . }}`,
		`{{ printf }}`, `{{ lt 1 "a" }}`, `{{ with .Values.s }}{{ .x | toJson }}{{ end }}`,
		`{{ merge .Values.s .Values }}`, `{{ dict "a" .Values.s.x | toYaml }}`, `{{ .Values.s 3 }}`,
		"{{ define \"k\" }}{{ .a.b }}{{ end }}\n{{ template \"k\" . }}", `{{ .Files.Get 3 }}`,
		`{{ list 1 2 | first | upper }}`, `{{ slice .Values.s 9 }}`, `{{ .Values.s | fromYaml | get "x" }}`,
		"{{- range list 1 2 }}\n{{- toYaml (index $.Values.l 7) | nindent 2 }}\n{{- end }}",
		"{{ if true }}\n# text\n\n{{ toJson (.Values.s | upper 1) }}{{ end }}", `{{ .Values.nothing | upper }}`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			chart := files{"templates/main.yaml": text, "values.yaml": "s: text\nl: [1]\n", "templates/_h.tpl": "" +
				"{{ define \"fails\" }}\n {{ fail \"inner\" }}{{ end }}{{ define \"deep\" }}\n" +
				"{{ include \"fails\" . | indent 3 }}{{ end }}{{ define \"nil\" }}{{ .Values.a.b }}{{ end }}"}
			want := strings.TrimPrefix(errorOfHelm(t, chart), "template: ")
			want = spaces.ReplaceAllString(columnOfHelm.ReplaceAllString(want, "$1"), " ")
			generator, err := helm.NewGenerator(chart.folder(), "", helm.Options{})
			if err == nil {
				_, err = generator.Generate(newCluster().context(t.Context()), "north", "shop", values(t, "{}"))
			}
			if err == nil {
				t.Fatal("want an error")
			}
			got := strings.TrimPrefix(strings.TrimPrefix(err.Error(), `unable to load chart "": `), "chart demo: ")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the error differs (-want +got):\n%s", diff)
			}
		})
	}
}
