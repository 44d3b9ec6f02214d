{{- /* What the pods of both Deployments have in common. */ -}}
{{- define "keda-gpu-scaler.pod" -}}
# Addresses of Services in the environment would look like settings.
enableServiceLinks: false
{{- with include "keda-gpu-scaler.pullSecrets" . }}
{{ . }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "keda-gpu-scaler.container" -}}
image: {{ include "keda-gpu-scaler.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: [keda-gpu-scaler]
env:
  {{- include "keda-gpu-scaler.ownEnv" . | nindent 2 }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  {{- include "keda-gpu-scaler.mounts" . | nindent 2 }}
{{- end -}}

{{- define "keda-gpu-scaler.placed" -}}
volumes:
  {{- include "keda-gpu-scaler.volumes" . | nindent 2 }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "keda-gpu-scaler.dnsEgress" -}}
# DNS, wherever it is answered. OpenShift's pods answer at 5353, and a rule is about the port of a pod.
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
    - port: 5353
      protocol: UDP
    - port: 5353
      protocol: TCP
{{- end -}}
