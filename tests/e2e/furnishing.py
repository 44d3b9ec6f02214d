"""How a lab is set up and cleared away: started in order, ended in reverse order."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import lightkube
from lightkube import codecs
from lightkube.resources.core_v1 import Namespace, Node

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from testbed.cluster import manifests
from testbed.cluster.timeline import Timeline
from testbed.cluster.watching import watching
from testbed.prometheus import PrometheusServer
from tests.e2e import kube_state_metrics, simulator
from tests.e2e.lab import Lab
from tests.e2e.product import Scaler
from tests.e2e.relay import Relay

NODES = 3
GPUS_PER_NODE = 8


@contextlib.asynccontextmanager
async def open_lab(
    name: str,
    kubeconfig: Path,
    directory: Path,
    evidence: EvidenceSource = EvidenceSource.KUBE_STATE_METRICS,
) -> AsyncIterator[Lab]:
    """Furnish a lab of its own name in the cluster, and clear it away afterwards.

    Logs and stored samples go to the directory. The evidence is the strongest source of which pods
    exist, and of their state.
    """
    configuration = lightkube.KubeConfig.from_file(kubeconfig)
    client = lightkube.AsyncClient(configuration, field_manager="e2e", trust_env=False)
    nodes = [f"{name}-{index}" for index in range(NODES)]
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(client.close)
        await stack.enter_async_context(_ground(client, name, nodes))
        gpus = await stack.enter_async_context(simulator.standing(configuration, name))
        exporters = {node: Relay(gpus.port) for node in nodes}
        for relay in exporters.values():
            await stack.enter_async_context(relay)
        scrape_configs = _scrape_configs(exporters, gpus.port)
        if evidence is EvidenceSource.KUBE_STATE_METRICS:
            port = await stack.enter_async_context(kube_state_metrics.standing(client, name))
            # Its labels are those of the objects that it describes.
            pods = {"job_name": "kube-state-metrics", "honor_labels": True}
            targets = [{"targets": [f"127.0.0.1:{port}"]}]
            scrape_configs.append(pods | {"static_configs": targets})
        prometheus = PrometheusServer(directory, scrape_configs)
        await stack.enter_async_context(prometheus)
        door = await stack.enter_async_context(Relay(prometheus.port))
        asks_api = evidence is EvidenceSource.KUBERNETES
        settings = {"KUBERNETES": "true"} if asks_api else {}
        scaler = Scaler(
            directory,
            f"http://{door.address}",
            settings=settings,
            kubeconfig=kubeconfig if asks_api else None,
        )
        stack.callback(scaler.stop)
        await scaler.start()
        timeline = Timeline()
        await stack.enter_async_context(watching(client, name, timeline))
        yield Lab(
            name,
            kubeconfig,
            directory,
            client,
            timeline,
            gpus,
            prometheus,
            exporters,
            door,
            scaler,
        )


@contextlib.asynccontextmanager
async def _ground(
    client: lightkube.AsyncClient, name: str, nodes: Iterable[str]
) -> AsyncIterator[None]:
    """Create the namespace and its nodes; request their deletion without waiting for it."""
    created = [manifests.namespace(name)]
    created += [manifests.node(node, name, GPUS_PER_NODE) for node in nodes]
    for manifest in created:
        await client.create(codecs.from_dict(manifest))
    try:
        yield
    finally:
        await client.delete(Namespace, name)
        for node in await _nodes(client, name):
            await client.delete(Node, node)


async def _nodes(client: lightkube.AsyncClient, lab: str) -> list[str]:
    """Return the nodes that a lab still has: a scenario may have taken some away."""
    left = [each async for each in client.list(Node, labels={manifests.NODE_LABEL: lab})]
    return [each.metadata.name for each in left if each.metadata and each.metadata.name]


def _scrape_configs(exporters: Mapping[str, Relay], simulator_port: int) -> list[dict[str, Any]]:
    """Scrape an exporter on each node, as its DaemonSet would run, and the router."""
    nodes = [
        {"targets": [relay.address], "labels": {"__metrics_path__": f"/nodes/{node}/metrics"}}
        for node, relay in exporters.items()
    ]
    router = [{"targets": [f"127.0.0.1:{simulator_port}"]}]
    return [
        {"job_name": "dcgm-exporter", "static_configs": nodes},
        {"job_name": "router", "metrics_path": "/router/metrics", "static_configs": router},
    ]
