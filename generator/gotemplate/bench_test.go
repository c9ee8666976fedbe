package gotemplate

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// chart is a template of 100 objects, as they are in charts.
const chart = `{{ define "labels" -}}
app: {{ .name | trunc 63 | trimSuffix "-" }}
version: {{ .version | quote }}
{{- end }}
{{- range $i := until 100 }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ printf "%s-%d" $.name $i }}
  labels: {{- include "labels" $ | nindent 4 }}
  {{- with $.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  replicas: {{ $.replicas }}
  selector:
    matchLabels: {{- include "labels" $ | nindent 6 }}
  template:
    spec:
      serviceAccountName: {{ default "default" $.account }}
      containers:
        {{- range $.containers }}
        - name: {{ .name }}
          image: "{{ .image }}:{{ default $.version .tag }}"
          {{- if .ports }}
          ports: {{- range .ports }}
            - containerPort: {{ . }}
          {{- end }}
          {{- end }}
          resources: {{- toYaml .resources | nindent 12 }}
        {{- end }}
{{- end }}
`

func chartData() map[string]any {
	container := map[string]any{
		"name": "main", "image": "example.com/main", "ports": []any{80, 443},
		"resources": map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi"}, "requests": map[string]any{"cpu": "10m"}},
	}
	return map[string]any{
		"name": "shop", "version": "1.2.3", "replicas": 3, "annotations": map[string]any{"a": "b", "c": "d"},
		"containers": []any{container, container},
	}
}

func BenchmarkPlain(b *testing.B) {
	data := chartData()
	for b.Loop() {
		if _, err := plain("", "", chart, data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGuarded(b *testing.B) {
	text, err := Instrument("file", chart, "", "")
	if err != nil {
		b.Fatal(err)
	}
	data := chartData()
	for b.Loop() {
		if _, err := execute("", "", text, data, NewGuard(context.Background(), Limits{})); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSet(b *testing.B) {
	set, err := Parse(map[string]string{"file": chart}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	data := chartData()
	for b.Loop() {
		if _, err := set.Execute(context.Background(), "file", data, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGuardFunctions(b *testing.B) {
	for b.Loop() {
		NewGuard(context.Background(), Limits{}).Functions()
	}
}

func BenchmarkInstrument(b *testing.B) {
	text := strings.Repeat(chart, 1)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Instrument("file", text, "", ""); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRounds is what a round of a loop costs.
func BenchmarkRounds(b *testing.B) {
	for name, instrument := range map[string]bool{"plain": false, "guarded": true} {
		b.Run(name, func(b *testing.B) {
			text := "{{ range 1000 }}{{ . }}{{ end }}"
			if instrument {
				var err error
				if text, err = Instrument("file", text, "", ""); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := execute("", "", text, nil, NewGuard(context.Background(), Limits{})); err != nil {
					b.Fatal(fmt.Errorf("%s: %w", name, err))
				}
			}
		})
	}
}
