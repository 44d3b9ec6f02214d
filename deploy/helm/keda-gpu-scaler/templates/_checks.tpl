{{- /* What the schema cannot say: values that are right one by one and wrong together. Each message
names the value and what to do, and all of them come at once. */ -}}
{{- define "keda-gpu-scaler.check" -}}
{{- $wrong := list -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongSettings" . | fromYamlArray) -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongTls" . | fromYamlArray) -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongRest" . | fromYamlArray) -}}
{{- if $wrong -}}
{{- fail (printf "\n\nThese values do not work:\n- %s\n" (join "\n- " $wrong)) -}}
{{- end -}}
{{- end -}}

{{- /* Settings that other values of the chart decide, or that hold a secret. */ -}}
{{- define "keda-gpu-scaler.wrongSettings" -}}
{{- $decided := dict
  "grpc_address" "the Services and probes use port 6000; leave it out"
  "http_address" "the Services and probes use port 8080; leave it out"
  "kubernetes" "set kubernetesEvidence.enabled, which also gives the scaler the role for it"
  "shutdown_grace" "set shutdownGraceSeconds, which also gives the pod that time"
  "grpc_cert_file" "set tls.enabled, with tls.existingSecret or tls.certManager"
  "grpc_key_file" "set tls.enabled, with tls.existingSecret or tls.certManager"
  "grpc_client_ca_file" "set tls.clientCertificates"
  "http_cert_file" "set http.tls.existingSecret"
  "http_key_file" "set http.tls.existingSecret"
  "http_token_file" "set http.tokenSecret.name"
  "http_token" "it is a secret; set http.tokenSecret.name"
  "webhook_token" "it is a secret; set webhook.enabled and webhook.tokenSecret.name"
  "webhook_token_file" "set webhook.enabled and webhook.tokenSecret.name"
  "webhook_peers" "set webhook.enabled, which names all replicas"
  "webhook_ca_file" "set http.tls.existingSecret, whose ca.crt it is"
  "traces" "set traces.enabled and traces.endpoint" -}}
{{- $wrong := list -}}
{{- range $name, $advice := $decided -}}
{{- if hasKey $.Values.settings $name -}}
{{- $wrong = append $wrong (printf "settings.%s: %s" $name $advice) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := .Values.settings -}}
{{- if and (include "keda-gpu-scaler.isSecret" (list $name $value)) (not (hasKey $decided $name)) -}}
{{- $variable := printf "KEDA_GPU_SCALER_%s" (upper $name) -}}
{{- $wrong = append $wrong (printf "settings.%s is a secret, and a ConfigMap shows it to many: give the variable %s in `env`, with valueFrom.secretKeyRef" $name $variable) -}}
{{- end -}}
{{- end -}}
{{- range $source, $content := .Values.settings.sources -}}
{{- range $name, $value := $content -}}
{{- if include "keda-gpu-scaler.isSecret" (list $name $value) -}}
{{- $wrong = append $wrong (printf "settings.sources.%s.%s is a secret, and a ConfigMap shows it to many: name a file of a mounted Secret (bearer_token_file with extraVolumes), or keep the whole settings file in a Secret (settingsSecret.name)" $source $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.settingsSecret.name .Values.settings -}}
{{- $wrong = append $wrong "settings and settingsSecret.name: there is one settings file; move the settings into the Secret, or leave settingsSecret.name empty" -}}
{{- end -}}
{{- $own := dict -}}
{{- range include "keda-gpu-scaler.ownEnv" . | fromYamlArray -}}
{{- $_ := set $own .name true -}}
{{- end -}}
{{- range .Values.env -}}
{{- if hasKey $own .name -}}
{{- $setting := trimPrefix "KEDA_GPU_SCALER_" .name | lower -}}
{{- $advice := get $decided $setting | default "leave it out, and set settings, settingsSecret or traces" -}}
{{- $wrong = append $wrong (printf "env has %s, which the chart sets itself: %s" .name $advice) -}}
{{- end -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end -}}

{{- /* Takes a setting's name and its value. */ -}}
{{- define "keda-gpu-scaler.isSecret" -}}
{{- $name := index . 0 -}}
{{- $text := index . 1 | toString | lower -}}
{{- if or (regexMatch "(token|password)$" $name) (and (hasSuffix "headers" $name) (contains "authorization" $text)) -}}
true
{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.wrongTls" -}}
{{- $tls := .Values.tls -}}
{{- $manager := $tls.certManager -}}
{{- $wrong := list -}}
{{- if not $tls.enabled -}}
{{- if or $tls.existingSecret $tls.client.existingSecret $manager.enabled -}}
{{- $wrong = append $wrong "tls.enabled is false, and other values of tls are set: set tls.enabled to true, or leave them out" -}}
{{- end -}}
{{- else -}}
{{- if not (or $tls.existingSecret $manager.enabled) -}}
{{- $wrong = append $wrong "tls.enabled needs a certificate: set tls.existingSecret to a Secret with tls.crt, tls.key and ca.crt, or tls.certManager.enabled to true" -}}
{{- end -}}
{{- if not (or $tls.client.existingSecret $manager.enabled) -}}
{{- $wrong = append $wrong (printf "tls.enabled needs something for KEDA to know the scaler by: set tls.client.existingSecret to a Secret in the namespace %s with ca.crt%s" .Values.keda.namespace (ternary ", tls.crt and tls.key" "" $tls.clientCertificates)) -}}
{{- end -}}
{{- if and $manager.enabled (or $tls.existingSecret $tls.client.existingSecret) -}}
{{- $wrong = append $wrong "tls.certManager.enabled is true, and Secrets are named as well: leave out tls.existingSecret and tls.client.existingSecret, or set tls.certManager.enabled to false" -}}
{{- end -}}
{{- if and $manager.enabled (not $manager.issuerRef.name) -}}
{{- $wrong = append $wrong "tls.certManager.enabled needs an issuer: set tls.certManager.issuerRef.name" -}}
{{- end -}}
{{- if and $manager.enabled (eq $manager.issuerRef.kind "Issuer") (ne .Release.Namespace .Values.keda.namespace) -}}
{{- $wrong = append $wrong (printf "tls.certManager.issuerRef.kind is Issuer, which works in one namespace, and the certificates are for %s and %s: use a ClusterIssuer" .Release.Namespace .Values.keda.namespace) -}}
{{- end -}}
{{- if and $tls.existingSecret (ne .Release.Namespace .Values.keda.namespace) (not .Values.test.clientSecret) -}}
{{- $wrong = append $wrong (printf "`helm test` needs what KEDA has to know the scaler by, and that is in another namespace: set test.clientSecret to a Secret in the namespace %s with ca.crt, the CA of the scaler's certificate%s" .Release.Namespace (ternary ", and tls.crt and tls.key, a pair that the scaler lets in" "" $tls.clientCertificates)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end -}}

{{- define "keda-gpu-scaler.wrongRest" -}}
{{- $wrong := list -}}
{{- if and .Values.webhook.enabled (not .Values.webhook.tokenSecret.name) -}}
{{- $wrong = append $wrong "webhook.enabled needs a token: set webhook.tokenSecret.name to a Secret that holds it" -}}
{{- end -}}
{{- if and .Values.webhook.tokenSecret.name (not .Values.webhook.enabled) -}}
{{- $wrong = append $wrong "webhook.tokenSecret.name is set, and webhook.enabled is false: set it to true, or leave the name out" -}}
{{- end -}}
{{- if and .Values.traces.enabled (not .Values.traces.endpoint) -}}
{{- $wrong = append $wrong "traces.enabled needs a collector: set traces.endpoint, such as http://otel-collector.monitoring.svc:4317" -}}
{{- end -}}
{{- if and .Values.traces.endpoint (not .Values.traces.enabled) -}}
{{- $wrong = append $wrong "traces.endpoint is set, and traces.enabled is false: set it to true, or leave the endpoint out" -}}
{{- end -}}
{{- if and .Values.networkPolicy.egress.enabled (not .Values.networkPolicy.egress.to) -}}
{{- $wrong = append $wrong "networkPolicy.egress.enabled leaves nothing but DNS: set networkPolicy.egress.to to the sources, and to the Kubernetes API where kubernetesEvidence.enabled is true" -}}
{{- end -}}
{{- if and .Values.kubernetesEvidence.enabled (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- $wrong = append $wrong "kubernetesEvidence.enabled would give its role to the service account `default`: set serviceAccount.name, or serviceAccount.create to true" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled -}}
{{- $wrong = append $wrong "metrics.serviceMonitor.enabled and metrics.podMonitor.enabled: both would scrape every replica, and each sum be twice what it is; set one of them" -}}
{{- end -}}
{{- if and .Values.test.clientSecret (not .Values.tls.enabled) -}}
{{- $wrong = append $wrong "test.clientSecret is set, and tls.enabled is false: set it to true, or leave the name out" -}}
{{- end -}}
{{- if and .Values.networkPolicy.egress.enabled (not .Values.networkPolicy.enabled) -}}
{{- $wrong = append $wrong "networkPolicy.egress.enabled is true, and networkPolicy.enabled is false: set both, or none" -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end -}}
