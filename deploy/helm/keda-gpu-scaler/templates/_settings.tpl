{{- /* Whether `settings` or `extraEnv` say where samples come from. What `extraEnvFrom` says is not known here: it
does if prometheus.url is empty. */ -}}
{{- define "keda-gpu-scaler.namesSource" -}}
{{- $settings := .Values.settings -}}
{{- if or $settings.sources $settings.prometheus_url $settings.scrape_targets $settings.influxdb_url -}}
true
{{- else if and .Values.extraEnvFrom (not .Values.prometheus.url) -}}
true
{{- else -}}
{{- range .Values.extraEnv -}}
{{- if has .name (list "KEDA_GPU_SCALER_PROMETHEUS_URL" "KEDA_GPU_SCALER_SCRAPE_TARGETS" "KEDA_GPU_SCALER_INFLUXDB_URL") -}}
true
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The settings file. */ -}}
{{- define "keda-gpu-scaler.settings" -}}
{{- $settings := deepCopy .Values.settings -}}
{{- if not (include "keda-gpu-scaler.namesSource" .) -}}
{{- $_ := set $settings "prometheus_url" .Values.prometheus.url -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{- /* What other values of the chart decide; the environment wins over the file. */ -}}
{{- define "keda-gpu-scaler.ownEnv" -}}
{{- $etc := "/etc/keda-gpu-scaler" -}}
- name: KEDA_GPU_SCALER_CONFIG
  value: {{ $etc }}/settings/{{ ternary .Values.settingsSecret.key "settings.yaml" (not (empty .Values.settingsSecret.name)) }}
- name: KEDA_GPU_SCALER_SHUTDOWN_GRACE
  value: {{ printf "%ds" (int .Values.shutdownGraceSeconds) }}
{{- if .Values.kubernetesApi.enabled }}
- name: KEDA_GPU_SCALER_KUBERNETES
  value: "true"
{{- end }}
{{- if .Values.tls.enabled }}
- name: KEDA_GPU_SCALER_GRPC_CERT_FILE
  value: {{ $etc }}/grpc-tls/tls.crt
- name: KEDA_GPU_SCALER_GRPC_KEY_FILE
  value: {{ $etc }}/grpc-tls/tls.key
{{- if .Values.tls.clientCertificates }}
- name: KEDA_GPU_SCALER_GRPC_CLIENT_CA_FILE
  value: {{ $etc }}/grpc-tls/ca.crt
{{- end }}
{{- end }}
{{- if .Values.http.tls.existingSecret }}
- name: KEDA_GPU_SCALER_HTTP_CERT_FILE
  value: {{ $etc }}/http-tls/tls.crt
- name: KEDA_GPU_SCALER_HTTP_KEY_FILE
  value: {{ $etc }}/http-tls/tls.key
{{- end }}
{{- if .Values.http.tokenSecret.name }}
- name: KEDA_GPU_SCALER_HTTP_TOKEN_FILE
  value: {{ $etc }}/http-token/{{ .Values.http.tokenSecret.key }}
{{- end }}
{{- if .Values.http.namespaceTokensSecret }}
- name: KEDA_GPU_SCALER_HTTP_NAMESPACE_TOKENS
  value: {{ $etc }}/http-namespace-tokens
{{- end }}
{{- if .Values.webhook.enabled }}
- name: KEDA_GPU_SCALER_WEBHOOK_TOKEN_FILE
  value: {{ $etc }}/webhook-token/{{ .Values.webhook.tokenSecret.key }}
- name: KEDA_GPU_SCALER_WEBHOOK_PEERS
  value: {{ printf "dns+%s://%s.%s.svc:8080" (include "keda-gpu-scaler.httpScheme" . | lower) (include "keda-gpu-scaler.peersName" .) .Release.Namespace }}
{{- if .Values.http.tls.existingSecret }}
- name: KEDA_GPU_SCALER_WEBHOOK_CA_FILE
  value: {{ $etc }}/http-tls/ca.crt
{{- end }}
{{- end }}
{{- if .Values.traces.enabled }}
- name: KEDA_GPU_SCALER_TRACES
  value: "true"
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .Values.traces.endpoint | quote }}
{{- end }}
{{- end -}}

{{- /* The container's files: whole folders, because a subPath would never see a new certificate. */ -}}
{{- define "keda-gpu-scaler.mounts" -}}
{{- $names := list "settings" -}}
{{- if .Values.tls.enabled }}{{ $names = append $names "grpc-tls" }}{{ end -}}
{{- if .Values.http.tls.existingSecret }}{{ $names = append $names "http-tls" }}{{ end -}}
{{- if .Values.http.tokenSecret.name }}{{ $names = append $names "http-token" }}{{ end -}}
{{- if .Values.http.namespaceTokensSecret }}{{ $names = append $names "http-namespace-tokens" }}{{ end -}}
{{- if .Values.webhook.enabled }}{{ $names = append $names "webhook-token" }}{{ end -}}
{{- $mounts := list -}}
{{- range $names -}}
{{- $mounts = append $mounts (dict "name" . "mountPath" (printf "/etc/keda-gpu-scaler/%s" .) "readOnly" true) -}}
{{- end -}}
{{- toYaml (concat $mounts .Values.extraVolumeMounts) -}}
{{- end -}}

{{- define "keda-gpu-scaler.volumes" -}}
- name: settings
{{- if .Values.settingsSecret.name }}
  {{- include "keda-gpu-scaler.secretVolume" .Values.settingsSecret.name | nindent 2 }}
{{- else }}
  configMap:
    name: {{ include "keda-gpu-scaler.fullname" . }}
{{- end }}
{{- if .Values.tls.enabled }}
- name: grpc-tls
  {{- include "keda-gpu-scaler.secretVolume" (include "keda-gpu-scaler.serverSecret" .) | nindent 2 }}
{{- end }}
{{- with .Values.http.tls.existingSecret }}
- name: http-tls
  {{- include "keda-gpu-scaler.secretVolume" . | nindent 2 }}
{{- end }}
{{- with .Values.http.tokenSecret.name }}
- name: http-token
  {{- include "keda-gpu-scaler.secretVolume" . | nindent 2 }}
{{- end }}
{{- with .Values.http.namespaceTokensSecret }}
- name: http-namespace-tokens
  {{- include "keda-gpu-scaler.secretVolume" . | nindent 2 }}
{{- end }}
{{- if .Values.webhook.enabled }}
- name: webhook-token
  {{- include "keda-gpu-scaler.secretVolume" .Values.webhook.tokenSecret.name | nindent 2 }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Readable by the pod's group alone. */ -}}
{{- define "keda-gpu-scaler.secretVolume" -}}
secret:
  secretName: {{ . }}
  defaultMode: 0440
{{- end -}}
