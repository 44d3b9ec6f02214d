{{- /* Names of values that other charts have, and what this one has in their place. The schema lets them
through, so that this is what is said of them. */ -}}
{{- define "keda-gpu-scaler.guesses" -}}
annotations: set commonAnnotations, or podAnnotations for the pods
args: set settings or extraEnv, which hold all that `serve` takes
autoscaling: set replicaCount; each replica answers all of KEDA's calls
certManager: set tls.certManager
config: set settings
configuration: set settings
containerSecurityContext: set securityContext
dashboard: set metrics.dashboard
dashboards: set metrics.dashboard
deploymentAnnotations: set commonAnnotations
env: set extraEnv
envFrom: set extraEnvFrom
existingSecret: set settingsSecret.name, tls.existingSecret or http.tokenSecret.name
extraArgs: set settings or extraEnv, which hold all that `serve` takes
extraEnvVars: set extraEnv
extraEnvVarsCM: set extraEnvFrom, with configMapRef
extraEnvVarsSecret: set extraEnvFrom, with secretRef
extraInitContainers: set initContainers
extraManifests: set extraObjects
grafana: set metrics.dashboard
grafanaDashboard: set metrics.dashboard
image.imagePullSecrets: set imagePullSecrets
image.name: set image.repository
image.pullSecrets: set imagePullSecrets
imagePullSecret: set imagePullSecrets, a list
ingress: set extraObjects; KEDA reaches the Service of the release
kubernetesEvidence: set kubernetesApi
labels: set commonLabels, or podLabels for the pods
logLevel: set settings.log_level
logging: set settings.log_level and settings.log_format
metrics.enabled: set metrics.serviceMonitor.enabled or metrics.podMonitor.enabled; metrics are served in any case
metrics.serviceMonitor.extraLabels: set metrics.serviceMonitor.labels
metrics.serviceMonitor.scrapeInterval: set metrics.serviceMonitor.interval
metrics.serviceMonitor.selector: set metrics.serviceMonitor.labels
observe: leave it out; `keda-gpu-scaler observe FOLDER` is a separate command, see docs/migrate/index.md
pdb: set podDisruptionBudget
podDisruptionBudget.create: set podDisruptionBudget.enabled
podMonitor: set metrics.podMonitor
priorityClass: set priorityClassName
prometheus.address: set prometheus.url
prometheus.enabled: set metrics.serviceMonitor.enabled or metrics.podMonitor.enabled
prometheus.podMonitor: set metrics.podMonitor
prometheus.prometheusRule: set metrics.prometheusRule
prometheus.serviceMonitor: set metrics.serviceMonitor
prometheusAddress: set prometheus.url
prometheusRule: set metrics.prometheusRule
prometheusRules: set metrics.prometheusRule
prometheusURL: set prometheus.url
prometheusUrl: set prometheus.url
rbac: set kubernetesApi.enabled, which also makes the role
replicas: set replicaCount
service.clusterIP: leave it out; the Service for KEDA is headless
service.port: leave it out; the ports are 6000 for KEDA and 8080 for HTTP
serviceAccount.automountServiceAccountToken: set serviceAccount.automount
serviceAccountName: set serviceAccount.name, and serviceAccount.create to false
serviceMonitor: set metrics.serviceMonitor
sidecars: set extraContainers
strategy: set deploymentStrategy
terminationGracePeriodSeconds: set shutdownGraceSeconds; the pod is given ten seconds more
tls.issuerRef: set tls.certManager.issuerRef
tls.secretName: set tls.existingSecret
updateStrategy: set deploymentStrategy
volumeMounts: set extraVolumeMounts
volumes: set extraVolumes
{{- end -}}

{{- define "keda-gpu-scaler.wrongNames" -}}
{{- $wrong := list -}}
{{- range $path, $hint := include "keda-gpu-scaler.guesses" . | fromYaml -}}
{{- $at := $.Values -}}
{{- range splitList "." $path | initial -}}
{{- $at = get $at . -}}
{{- end -}}
{{- if hasKey $at (splitList "." $path | last) -}}
{{- $wrong = append $wrong (printf "%s is no value of this chart: %s" $path $hint) -}}
{{- end -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end -}}
