{{- define "includes.name" -}}{{ .Chart.Name | trunc 63 }}{{- end }}
{{- define "includes.count" }}{{ if gt (int .n) 0 }}{{ .n }}{{ include "includes.count" (dict "n" (sub (int .n) 1)) }}{{ end }}{{ end }}
{{- define "includes.loop" }}{{ include "includes.loop" . }}{{ end }}
{{ define "includes.override" }}parent{{ end }}
