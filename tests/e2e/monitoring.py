"""A lab's Prometheus where it usually runs: behind a Service of the namespace `monitoring`."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from lightkube.resources.core_v1 import Namespace

from tests.e2e import manifests
from tests.e2e.kubelet.nodes import LABEL
from tests.e2e.lab import Lab
from tests.e2e.manifests import Manifest
from tests.e2e.network import ADDRESS

NAMESPACE, SERVICE, PORT = "monitoring", "prometheus-operated", 9090
_LABELS = {"app": "prometheus"}
GATEWAY_METRIC = "gateway_requests_in_progress"


@contextlib.asynccontextmanager
async def monitoring(lab: Lab) -> AsyncIterator[None]:
    """Make Prometheus reachable by its usual name, and scrape a gateway; until the block ends."""
    await lab.prometheus.reload([*lab.prometheus.scrape_configs, gateway(lab)])
    for manifest in (manifests.namespace(NAMESPACE), _service(), _pod(lab.door.address)):
        await lab.apply(manifest)
    try:
        yield
    finally:
        await lab.client.delete(Namespace, NAMESPACE)


def gateway(lab: Lab) -> dict[str, Any]:
    """Return the scrape configuration of a gateway with as many requests as offered load."""
    renamed = [
        {"source_labels": ["workload"], "target_label": "service"},
        {"target_label": "__name__", "replacement": GATEWAY_METRIC},
    ]
    return {
        "job_name": "gateway",
        "metrics_path": "/router/metrics",
        "static_configs": [{"targets": [f"127.0.0.1:{lab.simulator.port}"]}],
        "metric_relabel_configs": renamed,
    }


def _service() -> Manifest:
    ports = [{"name": "web", "port": PORT}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {"selector": _LABELS, "ports": ports},
    }


def _pod(address: str) -> Manifest:
    container = {"name": "prometheus", "image": "prometheus", "ports": [{"containerPort": PORT}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "prometheus-0",
            "namespace": NAMESPACE,
            "labels": _LABELS,
            "annotations": {ADDRESS: address},
        },
        "spec": {"nodeSelector": {LABEL: "true"}, "containers": [container]},
    }
