{{- /* How a Prometheus scrapes the HTTP port; honorLabels, because `namespace` is a ScaledObject's. */ -}}
{{- define "keda-gpu-scaler.scraping" -}}
{{- $root := .root -}}
{{- $monitor := .monitor -}}
port: http
path: /metrics
honorLabels: true
{{- with $monitor.interval }}
interval: {{ . }}
{{- end }}
{{- with $monitor.scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- with $monitor.relabelings }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $monitor.metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
scheme: {{ include "keda-gpu-scaler.httpScheme" $root | lower }}
{{- with $root.Values.http.tls.existingSecret }}
tlsConfig:
  {{- if $monitor.tlsConfig }}
  {{- toYaml $monitor.tlsConfig | nindent 2 }}
  {{- else }}
  serverName: {{ include "keda-gpu-scaler.fullname" $root }}-http.{{ $root.Release.Namespace }}.svc
  ca:
    secret:
      name: {{ . }}
      key: ca.crt
  {{- end }}
{{- end }}
{{- with $root.Values.http.tokenSecret }}
{{- if .name }}
authorization:
  credentials:
    name: {{ .name }}
    key: {{ .key }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* The groups of files/alerts.yaml as the values want them; a name that is no alert is refused. */ -}}
{{- define "keda-gpu-scaler.alertGroups" -}}
{{- $values := .Values.metrics.prometheusRule -}}
{{- $groups := (.Files.Get "files/alerts.yaml" | fromYaml).groups -}}
{{- $known := list -}}
{{- range $group := $groups -}}
{{- $rules := list -}}
{{- range $rule := $group.rules -}}
{{- $known = append $known $rule.alert -}}
{{- if not (has $rule.alert $values.disabledAlerts) -}}
{{- $_ := set $rule "labels" (merge (dict) $values.alertLabels $rule.labels) -}}
{{- with $values.runbookBaseUrl -}}
{{- $anchor := splitList "#" $rule.annotations.runbook_url | last -}}
{{- $_ := set $rule.annotations "runbook_url" (printf "%s#%s" . $anchor) -}}
{{- end -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- end -}}
{{- $_ := set $group "rules" $rules -}}
{{- end -}}
{{- range $name := $values.disabledAlerts -}}
{{- if not (has $name $known) -}}
{{- fail (printf "\n\nThese values do not work:\n- metrics.prometheusRule.disabledAlerts: %s is no alert; there are %s\n" $name (join ", " $known)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $groups -}}
{{- end -}}
