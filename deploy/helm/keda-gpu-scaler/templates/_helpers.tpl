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
{{ include "keda-gpu-scaler.labelsAnd" (list . dict) }}
{{- end -}}

{{- /* The labels of an object with those of its own value, which cannot replace the chart's. */ -}}
{{- define "keda-gpu-scaler.labelsAnd" -}}
{{ include "keda-gpu-scaler.ownLabels" (index . 0) }}
{{- with merge (dict) (index . 1) (index . 0).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "keda-gpu-scaler.ownLabels" -}}
{{ include "keda-gpu-scaler.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* The labels of an object with those of its own values, by which another program chooses it. */ -}}
{{- define "keda-gpu-scaler.labelsWith" -}}
{{- $labels := include "keda-gpu-scaler.labels" (index . 0) | fromYaml -}}
{{- range rest . -}}
{{- $labels = merge (dict) . $labels -}}
{{- end -}}
{{- toYaml $labels -}}
{{- end -}}

{{- /* The annotations of an object, with those of all objects; nothing where there are none. */ -}}
{{- define "keda-gpu-scaler.annotations" -}}
{{- $annotations := dict -}}
{{- range rest . -}}
{{- $annotations = merge $annotations . -}}
{{- end -}}
{{- with merge $annotations (index . 0).Values.commonAnnotations -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.image" -}}
{{- $image := .Values.image -}}
{{- $repository := $image.repository -}}
{{- with default $image.registry .Values.global.imageRegistry -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository -}}
{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* The Secrets to pull with, each given as a name or as `name: NAME`. */ -}}
{{- define "keda-gpu-scaler.pullSecrets" -}}
{{- $names := list -}}
{{- range concat .Values.global.imagePullSecrets .Values.imagePullSecrets -}}
{{- if kindIs "string" . -}}
{{- $names = append $names . -}}
{{- else -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- end -}}
{{- with uniq $names -}}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
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

{{- /* The Service by which replicas find each other: a headless one, as that for KEDA is by default. */ -}}
{{- define "keda-gpu-scaler.peersName" -}}
{{- include "keda-gpu-scaler.fullname" . }}{{ if ne .Values.service.type "ClusterIP" }}-peers{{ end -}}
{{- end -}}

{{- /* A warning where the cluster has no KEDA. Only of a cluster does Helm know each kind: `helm template` and
`--dry-run=client` have a list of Kubernetes' own groups, which says nothing. */ -}}
{{- define "keda-gpu-scaler.withoutKeda" -}}
{{- $served := .Capabilities.APIVersions -}}
{{- if and ($served.Has "apps/v1/Deployment") (not ($served.Has "keda.sh/v1alpha1")) -}}
WARNING: this cluster does not serve keda.sh/v1alpha1, so nothing calls the scaler and kubectl refuses the
ScaledObject below. Install KEDA: https://keda.sh/docs/latest/deploy/
{{- end -}}
{{- end -}}

{{- define "keda-gpu-scaler.kedaNamespace" -}}
{{- default .Release.Namespace .Values.keda.namespace -}}
{{- end -}}

{{- /* Where KEDA is let in from. Before keda.namespace could be empty it was `keda` by default: a release
elsewhere that relied on that must not shut KEDA out when it is upgraded. */ -}}
{{- define "keda-gpu-scaler.kedaNamespaces" -}}
{{- $namespaces := list (include "keda-gpu-scaler.kedaNamespace" .) -}}
{{- if not .Values.keda.namespace -}}
{{- $namespaces = append $namespaces "keda" | uniq -}}
{{- end -}}
{{- toYaml $namespaces -}}
{{- end -}}

{{- /* A probe: what its value says, about the endpoint given here unless the value names another. */ -}}
{{- define "keda-gpu-scaler.probe" -}}
{{- $given := index . 0 -}}
{{- $own := index . 1 | fromYaml -}}
{{- range list "httpGet" "grpc" "tcpSocket" "exec" -}}
{{- if hasKey $given . -}}
{{- $own = dict -}}
{{- end -}}
{{- end -}}
{{- toYaml (merge $own $given) -}}
{{- end -}}

{{- define "keda-gpu-scaler.httpProbe" -}}
httpGet:
  path: {{ index . 1 }}
  port: http
  scheme: {{ include "keda-gpu-scaler.httpScheme" (index . 0) }}
{{- end -}}

{{- define "keda-gpu-scaler.serverSecret" -}}
{{- default (printf "%s-tls" (include "keda-gpu-scaler.fullname" .)) .Values.tls.existingSecret -}}
{{- end -}}

{{- define "keda-gpu-scaler.clientSecret" -}}
{{- default (printf "%s-client" (include "keda-gpu-scaler.fullname" .)) .Values.tls.client.existingSecret -}}
{{- end -}}

{{- /* In the release's namespace, unlike KEDA's own. Its ca.crt is the CA of the scaler's certificate, as in
KEDA's Secret: a pair of cert-manager's is of the same issuer as KEDA's, and of tls.existingSecret
that is not known. */ -}}
{{- define "keda-gpu-scaler.testSecret" -}}
{{- if .Values.test.clientSecret -}}
{{- .Values.test.clientSecret -}}
{{- else if eq .Release.Namespace (include "keda-gpu-scaler.kedaNamespace" .) -}}
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
