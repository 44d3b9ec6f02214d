"""What a cluster says of pods and their owners: the Kubernetes API, and kube-state-metrics."""
