{{- define "umbrella.shared" }}{{ .Chart.Name }} sees {{ .Values.global.region }}{{ end -}}
