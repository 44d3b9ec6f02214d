{{- /* Addresses of sources among the values. The schema knows only that they are texts: its message would
show a regular expression, and not what to write. */ -}}
{{- define "keda-gpu-scaler.wrongUrls" -}}
{{- $settings := .Values.settings -}}
{{- $wrong := list -}}
{{- if or .Values.prometheus.url (not (or .Values.settingsSecret.name (include "keda-gpu-scaler.namesSource" .))) -}}
{{- $wrong = append $wrong (include "keda-gpu-scaler.wrongUrl" (list "prometheus.url" .Values.prometheus.url)) -}}
{{- end -}}
{{- range $name := list "prometheus_url" "influxdb_url" -}}
{{- with get $settings $name -}}
{{- $wrong = append $wrong (include "keda-gpu-scaler.wrongUrl" (list (printf "settings.%s" $name) .)) -}}
{{- end -}}
{{- end -}}
{{- with $settings.scrape_targets -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongTargets" (list "settings.scrape_targets" .) | fromYamlArray) -}}
{{- end -}}
{{- range $source, $content := $settings.sources -}}
{{- if hasKey $content "url" -}}
{{- $wrong = append $wrong (include "keda-gpu-scaler.wrongUrl" (list (printf "settings.sources.%s.url" $source) $content.url)) -}}
{{- end -}}
{{- if hasKey $content "targets" -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongTargets" (list (printf "settings.sources.%s.targets" $source) $content.targets) | fromYamlArray) -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if and .value (not (contains "$(" (toString .value))) -}}
{{- $name := printf "extraEnv: %s" .name -}}
{{- if has .name (list "KEDA_GPU_SCALER_PROMETHEUS_URL" "KEDA_GPU_SCALER_INFLUXDB_URL") -}}
{{- $wrong = append $wrong (include "keda-gpu-scaler.wrongUrl" (list $name .value)) -}}
{{- else if eq .name "KEDA_GPU_SCALER_SCRAPE_TARGETS" -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongTargets" (list $name .value) | fromYamlArray) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.traces.endpoint -}}
{{- if not (regexMatch "^https?://." .) -}}
{{- $wrong = append $wrong (include "keda-gpu-scaler.notUrl" (list "traces.endpoint" . "http://otel-collector.monitoring.svc:4317")) -}}
{{- end -}}
{{- end -}}
{{- toYaml (compact $wrong) -}}
{{- end -}}

{{- /* What is wrong with the base URL of a source, if anything; takes the value's name and the value. */ -}}
{{- define "keda-gpu-scaler.wrongUrl" -}}
{{- $pattern := printf `^https?://%s(/[!-"$->@-~]*)?$` (include "keda-gpu-scaler.authority" .) -}}
{{- $beyond := `^([^@]*?)/+(api/v1(/.*)?|graph|vmui)/*$` -}}
{{- if not (regexMatch $pattern (index . 1 | toString)) -}}
{{- include "keda-gpu-scaler.notUrl" (append . "http://prometheus.monitoring.svc:9090") -}}
{{- else if regexMatch $beyond (index . 1) -}}
{{- printf "%s is %q: expected the base URL, as the scaler adds the path of each query; set it to %s" (index . 0) (index . 1) (regexReplaceAll $beyond (index . 1) "${1}") -}}
{{- end -}}
{{- end -}}

{{- /* The same for exporters: a list, or a text with commas. */ -}}
{{- define "keda-gpu-scaler.wrongTargets" -}}
{{- $name := index . 0 -}}
{{- $value := index . 1 -}}
{{- $pattern := printf `^(dns\+)?https?://%s([/?][!-"$-~]*)?$` (include "keda-gpu-scaler.authority" .) -}}
{{- $wrong := list -}}
{{- if kindIs "slice" $value -}}
{{- range $number, $target := $value -}}
{{- if not (regexMatch $pattern (toString $target)) -}}
{{- $wrong = append $wrong (include "keda-gpu-scaler.notUrl" (list (printf "%s[%d]" $name $number) $target "http://10.0.0.1:9400/metrics" "dns+")) -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- range $target := regexReplaceAll `,\s*$` (toString $value) "" | splitList "," -}}
{{- if not (regexMatch $pattern (trim $target)) -}}
{{- $wrong = append $wrong (include "keda-gpu-scaler.notUrl" (list $name (trim $target) "http://10.0.0.1:9400/metrics" "dns+")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end -}}

{{- /* The sentence about one; takes the value's name, the value, an example, and `dns+` where that may be in
front. What may be a secret, a user or a query, is not shown. */ -}}
{{- define "keda-gpu-scaler.notUrl" -}}
{{- $name := index . 0 -}}
{{- $given := index . 1 | toString -}}
{{- $example := index . 2 -}}
{{- $isTarget := gt (len .) 3 -}}
{{- $schemes := ternary "http://, https://, dns+http:// or dns+https://" "http:// or https://" $isTarget -}}
{{- $shown := regexReplaceAll `\?.*` (regexReplaceAll `^([A-Za-z+]*://)?[^/?#]*@` $given "${1}***@") "?***" -}}
{{- if not $given -}}
{{- printf "%s is empty: expected a URL that begins with %s; set it to one such as %s" $name $schemes $example -}}
{{- else if regexMatch `^[A-Za-z][A-Za-z0-9+.-]*://` $given -}}
{{- printf "%s is %q: expected %s, a host, and an optional port and path, without %s; set it to a URL such as %s" $name $shown $schemes (ternary "a space or a fragment" "a space, a query or a fragment" $isTarget) $example -}}
{{- else -}}
{{- $host := regexReplaceAll `^(https?:?/+|/+)?([^/?#]*@)?([^?#]*).*$` $given "${3}" -}}
{{- $fixed := printf "%s://%s" (ternary "https" "http" (hasPrefix "https:" $given)) $host -}}
{{- $isGood := regexMatch (printf `^https?://%s(/[!-~]*)?$` (include "keda-gpu-scaler.authority" .)) $fixed -}}
{{- printf "%s is %q, which has no scheme: expected %s in front of the host; set it to %s" $name $shown $schemes (ternary $fixed (printf "a URL such as %s" $example) $isGood) -}}
{{- end -}}
{{- end -}}

{{- /* A host, perhaps with a port. A user before an @ passes: secretIn says what to do with it. */ -}}
{{- define "keda-gpu-scaler.authority" -}}
{{- $port := `[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]` -}}
{{- $group := `[\dA-Fa-f]{1,4}` -}}
{{- $whole := printf `(%s:){7}%s` $group $group -}}
{{- $ended := printf `(%s:){1,6}:(%s)?` $group $group -}}
{{- $within := printf `(%s:){1,3}(:%s){1,4}` $group $group -}}
{{- printf `([^/?#,@\s]*@)?([\w.-]+|\[(%s|%s|%s)\])(:(%s))?` $whole $ended $within $port -}}
{{- end -}}
