"""What all workloads with GPUs used, as a Prometheus has recorded it: read slowly, and in parts."""
