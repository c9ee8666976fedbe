{{- define "common-lib.configmap" -}}
{{- $root := first . }}{{ $args := last . -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $root.Release.Name }}-{{ $args.name }}
  labels:
    label: {{ index $root.Values "common-lib" "label" }}
data: {{- $args.data | toYaml | nindent 2 }}
{{- end -}}
