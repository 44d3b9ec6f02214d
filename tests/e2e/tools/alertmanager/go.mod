module keda-gpu-scaler-e2e-alertmanager

go 1.26.0

// Its own go.mod and go.sum decide about what it is built with: see the Makefile.
require github.com/prometheus/alertmanager v0.34.2
