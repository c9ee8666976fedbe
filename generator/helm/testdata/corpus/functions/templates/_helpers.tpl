{{- define "functions.name" -}}{{ .Chart.Name }}-{{ .Release.Name }}{{- end -}}
