{{- define "keda-gpu-scaler.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- /* Names end with up to eleven letters more (`-dashboard`), and 63 is the most a Service may have. */ -}}
{{- define "keda-gpu-scaler.fullname" -}}
{{- $name := include "keda-gpu-scaler.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.selectorLabels" -}}
app.kubernetes.io/name: {{ include "keda-gpu-scaler.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* The pods that answer KEDA, and not the one of `helm test`. */ -}}
{{- define "keda-gpu-scaler.podSelector" -}}
{{ include "keda-gpu-scaler.selectorLabels" . }}
app.kubernetes.io/component: scaler
{{- end -}}

{{- define "keda-gpu-scaler.labels" -}}
{{ include "keda-gpu-scaler.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "keda-gpu-scaler.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "keda-gpu-scaler.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* Where KEDA finds the scaler. */ -}}
{{- define "keda-gpu-scaler.scalerAddress" -}}
{{- printf "%s.%s.svc:6000" (include "keda-gpu-scaler.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "keda-gpu-scaler.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "keda-gpu-scaler.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "keda-gpu-scaler.serverSecret" -}}
{{- default (printf "%s-tls" (include "keda-gpu-scaler.fullname" .)) .Values.tls.existingSecret -}}
{{- end -}}

{{- define "keda-gpu-scaler.clientSecret" -}}
{{- default (printf "%s-client" (include "keda-gpu-scaler.fullname" .)) .Values.tls.client.existingSecret -}}
{{- end -}}

{{- /* In the release's namespace, unlike KEDA's own. Its ca.crt is the CA of the scaler's certificate, as in
KEDA's Secret: a pair of cert-manager's is of the same issuer as KEDA's, and of tls.existingSecret
nobody knows that. */ -}}
{{- define "keda-gpu-scaler.testSecret" -}}
{{- if .Values.test.clientSecret -}}
{{- .Values.test.clientSecret -}}
{{- else if eq .Release.Namespace .Values.keda.namespace -}}
{{- include "keda-gpu-scaler.clientSecret" . -}}
{{- else -}}
{{- include "keda-gpu-scaler.serverSecret" . -}}
{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.httpScheme" -}}
{{- ternary "HTTPS" "HTTP" (not (empty .Values.http.tls.existingSecret)) -}}
{{- end -}}

{{- /* How grpcurl is let in through a forwarded port, whose name is not the certificate's. */ -}}
{{- define "keda-gpu-scaler.grpcurlFlags" -}}
{{- if not .Values.tls.enabled -}}
-plaintext
{{- else -}}
-authority {{ include "keda-gpu-scaler.fullname" . }}.{{ .Release.Namespace }}.svc -cacert ca.crt{{ if .Values.tls.clientCertificates }} -cert tls.crt -key tls.key{{ end }}
{{- end -}}
{{- end -}}

{{- /* What both certificates have in common. */ -}}
{{- define "keda-gpu-scaler.certificate" -}}
privateKey:
  algorithm: ECDSA
  size: 256
  rotationPolicy: Always
issuerRef:
  {{- toYaml .Values.tls.certManager.issuerRef | nindent 2 }}
{{- end }}
