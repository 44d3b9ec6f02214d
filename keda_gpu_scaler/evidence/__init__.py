"""What a cluster says of pods and their owners: the Kubernetes API, and kube-state-metrics.

A Prometheus is asked about kube-state-metrics by its source (`sources/prometheus/source.py`);
here its rows are read. So the evidence knows no source.
"""
