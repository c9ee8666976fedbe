{{- define "monitor.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "monitor.job" -}}
{{- with .Values.jobs.managedBy }}
managedBy: {{ . }}
{{- end }}
backoffLimit: 2
template:
  spec:
    restartPolicy: Never
    containers:
    - name: tool
      image: {{ .Values.jobs.image }}
{{- end }}
