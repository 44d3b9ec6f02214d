"""The GPU nodes of a lab as a node pool that its autoscaler empties and fills."""

from collections.abc import Mapping
from typing import Any

from lightkube import codecs
from lightkube.resources.core_v1 import Node

from tests.e2e import manifests
from tests.e2e.furnishing import GPUS_PER_NODE
from tests.e2e.lab import Lab

ANY_GPU = '{__name__=~"DCGM_.*"}'


async def empty(lab: Lab) -> Mapping[str, Any]:
    """Take every node away with its exporter; returns how Prometheus had found the exporters."""
    lab.timeline.note("the node pool is emptied")
    [exporters, *others] = lab.prometheus.scrape_configs
    await lab.prometheus.reload(others)
    for node in lab.exporters:
        await lab.client.delete(Node, node)
    return exporters


async def fill(lab: Lab, exporters: Mapping[str, Any]) -> None:
    """Bring every node back with its exporter."""
    lab.timeline.note("the node pool is filled")
    for node in lab.exporters:
        await lab.client.create(codecs.from_dict(manifests.node(node, lab.name, GPUS_PER_NODE)))
    await lab.prometheus.reload([exporters, *lab.prometheus.scrape_configs])
