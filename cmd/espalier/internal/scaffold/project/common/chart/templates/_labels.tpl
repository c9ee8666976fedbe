{{- define "selector" -}}
app.kubernetes.io/name: placeholder-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}
