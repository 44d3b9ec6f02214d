"""The scaler under the real Kubernetes control plane, KEDA and Prometheus: `make e2e`."""
