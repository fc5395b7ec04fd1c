{{- define "heedful.labels" -}}
app.kubernetes.io/name: heedful
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "heedful.image" -}}
{{- $tag := .Values.image.tag | default (printf "%s%s" .Chart.AppVersion (ternary "-gpu" "" .Values.gpu.enabled)) -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ $tag }}{{ end }}
{{- end }}
