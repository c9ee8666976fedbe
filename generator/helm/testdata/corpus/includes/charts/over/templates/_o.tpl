{{ define "includes.override" }}child{{ end }}
