{{- /* What the schema cannot say: values that are right one by one and wrong together. Each message
names the value and what to do, and all of them come at once. */ -}}
{{- define "keda-gpu-scaler.check" -}}
{{- $wrong := list -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongNames" . | fromYamlArray) -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongImage" . | fromYamlArray) -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongSettings" . | fromYamlArray) -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongEnv" . | fromYamlArray) -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongUrls" . | fromYamlArray) -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongTls" . | fromYamlArray) -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongRest" . | fromYamlArray) -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.wrongBudget" . | fromYamlArray) -}}
{{- $wrong = concat $wrong (include "keda-gpu-scaler.refusedByKubernetes" . | fromYamlArray) -}}
{{- if $wrong -}}
{{- fail (printf "\n\nThese values do not work:\n- %s\n" (join "\n- " $wrong)) -}}
{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.wrongImage" -}}
{{- $wrong := list -}}
{{- if not .Values.image.repository -}}
{{- $wrong = append $wrong "image.repository is empty, and no registry has the image: build it with `make image` in the repository, push it to where your nodes find it, and set image.repository to that, such as images.example.com/keda-gpu-scaler; where the nodes were given the image, as with `kind load`, set it to keda-gpu-scaler" -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end -}}

{{- define "keda-gpu-scaler.wrongTls" -}}
{{- $keda := include "keda-gpu-scaler.kedaNamespace" . -}}
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
{{- $wrong = append $wrong (printf "tls.enabled needs something for KEDA to know the scaler by: set tls.client.existingSecret to a Secret in the namespace %s with ca.crt%s" $keda (ternary ", tls.crt and tls.key" "" $tls.clientCertificates)) -}}
{{- end -}}
{{- if and $manager.enabled (or $tls.existingSecret $tls.client.existingSecret) -}}
{{- $wrong = append $wrong "tls.certManager.enabled is true, and Secrets are named as well: leave out tls.existingSecret and tls.client.existingSecret, or set tls.certManager.enabled to false" -}}
{{- end -}}
{{- if and $manager.enabled (not .Values.keda.namespace) (ne .Release.Namespace "keda") -}}
{{- $wrong = append $wrong "tls.certManager.enabled makes a certificate in the namespace of KEDA: set keda.namespace to it" -}}
{{- end -}}
{{- if and $manager.enabled (not $manager.issuerRef.name) -}}
{{- $wrong = append $wrong "tls.certManager.enabled needs an issuer: set tls.certManager.issuerRef.name" -}}
{{- end -}}
{{- if and $manager.enabled (eq $manager.issuerRef.kind "Issuer") (ne .Release.Namespace $keda) -}}
{{- $wrong = append $wrong (printf "tls.certManager.issuerRef.kind is Issuer, which works in one namespace, and the certificates are for %s and %s: use a ClusterIssuer" .Release.Namespace $keda) -}}
{{- end -}}
{{- if and $tls.existingSecret (not .Values.keda.namespace) (ne .Release.Namespace "keda") (not .Values.test.clientSecret) -}}
{{- $wrong = append $wrong "tls.existingSecret: `helm test` reads the Secret of KEDA where that is in the namespace of the release: set keda.namespace to that of KEDA" -}}
{{- end -}}
{{- if and $tls.existingSecret (ne .Release.Namespace $keda) (not .Values.test.clientSecret) -}}
{{- $wrong = append $wrong (printf "`helm test` needs what KEDA has to know the scaler by, and that is in another namespace: set test.clientSecret to a Secret in the namespace %s with ca.crt, the CA of the scaler's certificate%s" .Release.Namespace (ternary ", and tls.crt and tls.key, a pair that the scaler lets in" "" $tls.clientCertificates)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end -}}

{{- define "keda-gpu-scaler.wrongRest" -}}
{{- $wrong := list -}}
{{- if and .Values.http.namespaceTokensSecret (not .Values.http.tokenSecret.name) -}}
{{- $wrong = append $wrong "http.namespaceTokensSecret needs a token for everything else: set http.tokenSecret.name to a Secret that holds it" -}}
{{- end -}}
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
{{- $wrong = append $wrong "networkPolicy.egress.enabled leaves nothing but DNS: set networkPolicy.egress.to to the sources, and to the Kubernetes API where kubernetesApi.enabled is true" -}}
{{- end -}}
{{- if and .Values.kubernetesApi.enabled (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- $wrong = append $wrong "kubernetesApi.enabled would give its role to the service account `default`: set serviceAccount.name, or serviceAccount.create to true" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled -}}
{{- $wrong = append $wrong "metrics.serviceMonitor.enabled and metrics.podMonitor.enabled: both would scrape every replica, and each sum be twice what it is; set one of them" -}}
{{- end -}}
{{- if and .Values.test.clientSecret (not .Values.tls.enabled) -}}
{{- $wrong = append $wrong "test.clientSecret is set, and tls.enabled is false: set it to true, or leave the name out" -}}
{{- end -}}
{{- if and .Values.deletionCost.enabled (not .Values.deletionCost.namespaces) -}}
{{- $wrong = append $wrong "deletionCost.enabled needs the namespaces whose pods it may annotate: set deletionCost.namespaces" -}}
{{- end -}}
{{- if and .Values.networkPolicy.egress.enabled (not .Values.networkPolicy.enabled) -}}
{{- $wrong = append $wrong "networkPolicy.egress.enabled is true, and networkPolicy.enabled is false: set both, or none" -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end -}}

{{- /* A budget that lets a drain take all replicas at once. Kubernetes rounds a percentage up. Of a single
replica none can let a drain go on and keep one, so any does. */ -}}
{{- define "keda-gpu-scaler.wrongBudget" -}}
{{- $budget := .Values.podDisruptionBudget -}}
{{- $replicas := int .Values.replicaCount -}}
{{- $least := toString $budget.minAvailable -}}
{{- $most := toString $budget.maxUnavailable -}}
{{- $wrong := list -}}
{{- if and $budget.enabled (gt $replicas 1) -}}
{{- if $least -}}
{{- if eq 0 (trimSuffix "%" $least | int) -}}
{{- $wrong = append $wrong (printf "podDisruptionBudget.minAvailable is %s, which lets a drain stop all %d replicas at once: expected at least 1; set it to 1, or leave it empty for podDisruptionBudget.maxUnavailable" $least $replicas) -}}
{{- end -}}
{{- else -}}
{{- $gone := trimSuffix "%" $most | int -}}
{{- if hasSuffix "%" $most -}}
{{- $gone = div (add (mul $gone $replicas) 99) 100 | int -}}
{{- end -}}
{{- if ge $gone $replicas -}}
{{- $wrong = append $wrong (printf "podDisruptionBudget.maxUnavailable is %s, which lets a drain stop all %d replicas at once: expected fewer than replicaCount; set it to 1" $most $replicas) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end -}}

{{- /* What renders, and Kubernetes or cert-manager would refuse, or read in another way than is meant. */ -}}
{{- define "keda-gpu-scaler.refusedByKubernetes" -}}
{{- $wrong := list -}}
{{- range $name, $_ := include "keda-gpu-scaler.podSelector" . | fromYaml -}}
{{- if hasKey $.Values.podLabels $name -}}
{{- $wrong = append $wrong (printf "podLabels has %s, by which the Deployment and the Services know the pods: leave it out" $name) -}}
{{- end -}}
{{- end -}}
{{- $own := append (include "keda-gpu-scaler.ownLabels" . | fromYaml | keys) "app.kubernetes.io/component" -}}
{{- $given := dict "commonLabels" .Values.commonLabels "service.labels" .Values.service.labels "service.http.labels" .Values.service.http.labels "serviceAccount.labels" .Values.serviceAccount.labels -}}
{{- range $value, $labels := $given -}}
{{- range $name := keys $labels | sortAlpha -}}
{{- if has $name $own -}}
{{- $wrong = append $wrong (printf "%s has %s, which the chart sets itself: leave it out" $value $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $value, $own := dict "extraContainers" "scaler" "initContainers" "scaler" -}}
{{- range get $.Values $value -}}
{{- if eq (toString .name) $own -}}
{{- $wrong = append $wrong (printf "%s has a container called %s, as the chart's own is: give it another name" $value $own) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if hasKey .Values.podAnnotations "checksum/settings" -}}
{{- $wrong = append $wrong "podAnnotations has checksum/settings, by which a change of the settings rolls the pods out: leave it out" -}}
{{- end -}}
{{- $policy := .Values.admissionPolicy -}}
{{- if and $policy.enabled (not .Values.keda.namespace) (ne .Release.Namespace "keda") -}}
{{- $wrong = append $wrong "admissionPolicy.enabled: by the namespace of KEDA the policy knows which addresses are the scaler's: set keda.namespace to it" -}}
{{- end -}}
{{- if and (has "Deny" $policy.validationActions) (has "Warn" $policy.validationActions) -}}
{{- $wrong = append $wrong "admissionPolicy.validationActions has Deny and Warn, which would say everything twice: leave one of them out" -}}
{{- end -}}
{{- $version := .Capabilities.KubeVersion.Version -}}
{{- range $value, $enabled := dict "admissionPolicy" $policy.enabled "deletionCost" .Values.deletionCost.enabled -}}
{{- if and $enabled (semverCompare "<1.30.0-0" $version) -}}
{{- $wrong = append $wrong (printf "%s.enabled needs Kubernetes 1.30, and this cluster has %s: set it to false" $value $version) -}}
{{- end -}}
{{- end -}}
{{- if .Values.tls.certManager.enabled -}}
{{- range $of, $lifetime := dict "tls.certManager" .Values.tls.certManager "tls.certManager.client" .Values.tls.certManager.client -}}
{{- if le (include "keda-gpu-scaler.seconds" $lifetime.duration | int) (include "keda-gpu-scaler.seconds" $lifetime.renewBefore | int) -}}
{{- $wrong = append $wrong (printf "%s.renewBefore is %s, which is not before a certificate of %s is made: set it to less than %s.duration, such as a third of it" $of $lifetime.renewBefore $lifetime.duration $of) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end -}}

{{- /* A duration such as 1h30m. */ -}}
{{- define "keda-gpu-scaler.seconds" -}}
{{- $units := dict "h" 3600 "m" 60 "s" 1 -}}
{{- $seconds := 0 -}}
{{- range regexFindAll "[0-9]+[hms]" . -1 -}}
{{- $unit := trimAll "0123456789" . -}}
{{- $seconds = add $seconds (mul (trimSuffix $unit . | int) (get $units $unit)) -}}
{{- end -}}
{{- $seconds -}}
{{- end -}}
