{{- /* Settings that other values of the chart decide, whether they are in use or not, and which. */ -}}
{{- define "keda-gpu-scaler.decided" -}}
grpc_address: the Services and probes use port 6000; leave it out
http_address: the Services and probes use port 8080; leave it out
kubernetes: set kubernetesApi.enabled, which also gives the scaler the role for it
shutdown_grace: set shutdownGraceSeconds, which also gives the pod that time
grpc_cert_file: set tls.enabled, with tls.existingSecret or tls.certManager
grpc_key_file: set tls.enabled, with tls.existingSecret or tls.certManager
grpc_client_ca_file: set tls.clientCertificates
http_cert_file: set http.tls.existingSecret
http_key_file: set http.tls.existingSecret
http_token_file: set http.tokenSecret.name
http_token: it is a secret; set http.tokenSecret.name
http_namespace_tokens: set http.namespaceTokensSecret
webhook_token: it is a secret; set webhook.enabled and webhook.tokenSecret.name
webhook_token_file: set webhook.enabled and webhook.tokenSecret.name
webhook_peers: set webhook.enabled, which names all replicas
webhook_ca_file: set http.tls.existingSecret, whose ca.crt it is
traces: set traces.enabled and traces.endpoint
{{- end -}}

{{- define "keda-gpu-scaler.wrongSettings" -}}
{{- $decided := include "keda-gpu-scaler.decided" . | fromYaml -}}
{{- $wrong := list -}}
{{- range $name, $value := .Values.settings -}}
{{- $reason := include "keda-gpu-scaler.secretIn" (list $name $value) -}}
{{- if hasKey $decided $name -}}
{{- $wrong = append $wrong (printf "settings.%s: %s" $name (get $decided $name)) -}}
{{- else if contains "@" $reason -}}
{{- $wrong = append $wrong (printf "settings.%s %s" $name $reason) -}}
{{- else if $reason -}}
{{- $wrong = append $wrong (printf "settings.%s %s, and a ConfigMap shows it to many: give the variable KEDA_GPU_SCALER_%s in `extraEnv`, with valueFrom.secretKeyRef" $name $reason (upper $name)) -}}
{{- end -}}
{{- end -}}
{{- range $source, $content := .Values.settings.sources -}}
{{- range $name, $value := $content -}}
{{- $reason := include "keda-gpu-scaler.secretIn" (list $name $value) -}}
{{- if contains "@" $reason -}}
{{- $wrong = append $wrong (printf "settings.sources.%s.%s %s" $source $name $reason) -}}
{{- else if $reason -}}
{{- $file := ternary "" "name a file of a mounted Secret (bearer_token_file with extraVolumes), or " (eq $name "targets") -}}
{{- $wrong = append $wrong (printf "settings.sources.%s.%s %s, and a ConfigMap shows it to many: %skeep the whole settings file in a Secret (settingsSecret.name)" $source $name $reason $file) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with include "keda-gpu-scaler.secretIn" (list "url" .Values.prometheus.url) -}}
{{- $wrong = append $wrong (printf "prometheus.url %s" .) -}}
{{- end -}}
{{- if and .Values.settingsSecret.name .Values.settings -}}
{{- $wrong = append $wrong "settings and settingsSecret.name: there is one settings file; move the settings into the Secret, or leave settingsSecret.name empty" -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end -}}

{{- /* Variables that the chart sets, now or with another value, and secrets written out; $(NAME) is
another variable's value. */ -}}
{{- define "keda-gpu-scaler.wrongEnv" -}}
{{- $decided := include "keda-gpu-scaler.decided" . | fromYaml -}}
{{- $own := list -}}
{{- range include "keda-gpu-scaler.ownEnv" . | fromYamlArray -}}
{{- $own = append $own .name -}}
{{- end -}}
{{- $wrong := list -}}
{{- range .Values.extraEnv -}}
{{- $setting := trimPrefix "KEDA_GPU_SCALER_" .name | lower -}}
{{- $reason := include "keda-gpu-scaler.secretIn" (list $setting .value) -}}
{{- if and (hasKey $decided $setting) (ne $setting (lower .name)) -}}
{{- $wrong = append $wrong (printf "extraEnv has %s, which the chart sets itself: %s" .name (get $decided $setting)) -}}
{{- else if has .name $own -}}
{{- $wrong = append $wrong (printf "extraEnv has %s, which the chart sets itself: leave it out, and set settings, settingsSecret or traces" .name) -}}
{{- else if and .value (contains "@" $reason) -}}
{{- $wrong = append $wrong (printf "extraEnv: %s %s" .name $reason) -}}
{{- else if and .value $reason (not (contains "$(" (toString .value))) -}}
{{- $wrong = append $wrong (printf "extraEnv: %s %s, and the Deployment shows it to many: give it with valueFrom.secretKeyRef" .name $reason) -}}
{{- end -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end -}}

{{- /* What in a setting may be a secret, if anything; takes its name and its value. Of headers only
tenants and the like are known not to be one; of a URL's query its names tell. An address with a user,
which the scaler refuses, is told with what to do: its text has an @. */ -}}
{{- define "keda-gpu-scaler.secretIn" -}}
{{- $name := index . 0 -}}
{{- $value := index . 1 -}}
{{- if regexMatch "(token|password|secret|(api|access|secret|private)_?key)$" $name -}}
is a secret
{{- else if hasSuffix "headers" $name -}}
{{- range include "keda-gpu-scaler.headerNames" $value | fromYamlArray -}}
{{- if not (regexMatch "(?i)^([a-z]+-)*(orgid|org-id|tenant|tenant-id|accountid|account-id|projectid|project-id|cluster|region|user-agent)$" .) -}}
has the header {{ . }}, which may be a secret{{ break }}
{{- end -}}
{{- end -}}
{{- else if regexMatch "://[^/?#,\\s]*@" (toString $value) -}}
has a user or a password before the @, which the scaler refuses: leave them out, and set `username` of the source, with its password from a Secret, as the page on the chart shows
{{- else -}}
{{- with regexFind "(?i)[?&][\\w.%-]*(token|key|password|secret)[\\w.%-]*=" (toString $value) -}}
has the query parameter {{ trimAll "?&=" . }}, which may be a secret
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Of headers in either form: a map, or text as name=value,name=value or JSON. */ -}}
{{- define "keda-gpu-scaler.headerNames" -}}
{{- $names := list -}}
{{- if kindIs "map" . -}}
{{- $names = keys . -}}
{{- else if hasPrefix "{" (toString .) -}}
{{- $names = fromJson . | keys -}}
{{- else -}}
{{- range splitList "," (toString . | default "") -}}
{{- $names = append $names (splitList "=" . | first | trim) -}}
{{- end -}}
{{- end -}}
{{- toYaml (sortAlpha $names) -}}
{{- end -}}
