module keda-gpu-scaler-e2e-crds

go 1.26.0

// Modules that only carry the CustomResourceDefinitions of what the chart can be used with.
require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
