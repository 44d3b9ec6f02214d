"""The Kubernetes objects of a scenario: GPU nodes, workloads, ScaledObjects."""

from collections.abc import Mapping, Sequence
from typing import Any

GPU = "nvidia.com/gpu"
NODE_LABEL = "e2e/lab"
Manifest = dict[str, Any]


def node(name: str, lab: str, gpus: int) -> Manifest:
    """Return a node with GPUs that only this lab's pods are placed on."""
    capacity = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {NODE_LABEL: lab, "kubernetes.io/hostname": name}},
        # As GPU nodes usually are: pods without a GPU request go elsewhere.
        "spec": {"taints": [{"key": GPU, "effect": "NoSchedule"}]},
        "status": {"allocatable": capacity, "capacity": capacity},
    }


def namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def secret(namespace: str, name: str, texts: Mapping[str, str]) -> Manifest:
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(texts)}


def workload(
    kind: str,
    namespace: str,
    name: str,
    *,
    replicas: int,
    gpus: int,
    annotations: Mapping[str, str],
    strategy: Mapping[str, Any] | None = None,
) -> Manifest:
    """Return a workload of Kubernetes' own kinds whose pods ask for GPUs of the lab's nodes."""
    labels = {"app": name}
    spec: Manifest = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": _template(namespace, name, gpus, annotations),
    }
    if kind == "StatefulSet":
        spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    if strategy is not None:
        spec |= {"strategy": strategy}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"namespace": namespace, "name": name},
        "spec": spec,
    }


def _template(namespace: str, app: str, gpus: int, annotations: Mapping[str, str]) -> Manifest:
    container = {
        "name": "model",
        "image": "model",
        "env": [{"name": "GPU_THRESHOLD", "value": "70"}],
        "resources": {"limits": {GPU: str(gpus)}},
    }
    return {
        "metadata": {"labels": {"app": app}, "annotations": dict(annotations)},
        "spec": {
            "nodeSelector": {NODE_LABEL: namespace},
            # Without a grace period the API server removes a pod at once, and it never drains.
            "terminationGracePeriodSeconds": 600 if "e2e/drain" in annotations else 0,
            "containers": [container],
        },
    }


def scaled_object(
    namespace: str,
    name: str,
    triggers: Sequence[Manifest],
    *,
    kind: str = "Deployment",
    min_replicas: int,
    max_replicas: int,
    polling_seconds: int,
    cooldown_seconds: int,
    stabilization_seconds: int,
    **fields: object,
) -> Manifest:
    """Return a ScaledObject as a user would write it, with short times."""
    behavior = {"scaleDown": {"stabilizationWindowSeconds": stabilization_seconds}}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name},
            "pollingInterval": polling_seconds,
            "cooldownPeriod": cooldown_seconds,
            "minReplicaCount": min_replicas,
            "maxReplicaCount": max_replicas,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": behavior}},
            "triggers": list(triggers),
            **fields,
        },
    }
