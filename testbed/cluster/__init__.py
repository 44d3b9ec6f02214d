"""A real Kubernetes with KEDA, as ordinary processes."""
