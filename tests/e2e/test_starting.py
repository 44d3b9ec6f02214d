"""Pods that start, on nodes that are there or still to come: loading is neither work nor idleness.

Where pod statuses are known, a pod itself reports when it is Ready. By exporters alone `warmup`
stands in for that: here it is longer than the loading in either case.
"""

import pytest
from lightkube import codecs
from lightkube.resources.core_v1 import Node

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from testbed.cluster import manifests
from tests.e2e import waking
from tests.e2e.furnishing import GPUS_PER_NODE
from tests.e2e.lab import Lab
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN, goes_to_zero, the_hpa_has_a_number

LOADING_SECONDS = 6
WARMUP = "12s"
"""A pod's series begin when it is placed: this covers its start and the end of the pod before."""
LONGER_THAN_THE_WARMUP = 16
"""And than the window after it."""


@pytest.mark.core
@pytest.mark.generations
async def test_a_rolling_update_at_load_moves_no_replicas(lab: Lab) -> None:
    await lab.deploy(
        "bert",
        replicas=4,
        load=230,
        loading_percent=100,
        startup_seconds=LOADING_SECONDS,
        # Long enough for a scrape to see old and new pods side by side.
        drain="2s",
        strategy={"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}},
    )
    await lab.reaches("bert", 4)
    # The HPA acts on every number at once.
    trigger = lab.gpu("bert", warmup=WARMUP, startTimeout="45s")
    await lab.autoscale("bert", trigger, min_replicas=0, stabilization_seconds=0)
    await the_hpa_has_a_number(lab)

    began = await lab.roll_out("bert")
    await lab.stays("bert", 4, for_seconds=LONGER_THAN_THE_WARMUP)
    assert lab.path("bert", began) == [4], lab.story()
    assert set(lab.timeline.path("bert", "ready", began)).isdisjoint(range(4)), lab.story()
    assert set(lab.timeline.path("bert", "pods", began)) - {4}, lab.story()
    # Without stabilization, the last work of replicas that just left can bring one back for a sync.
    await lab.offer("bert", 0)
    await lab.reaches("bert", 0)


@pytest.mark.core
@pytest.mark.parametrize("lab", [EvidenceSource.EXPORTERS], indirect=True, ids=str)
async def test_an_empty_node_pool_is_filled_by_demand_and_emptied_again(lab: Lab) -> None:
    everything = lab.prometheus.scrape_configs
    await _empty(lab)
    await lab.prometheus.restart_empty()
    demand = lab.offered("bert")
    await lab.deploy("bert")
    await waking.asleep(lab, "bert", waking.push(lab, "bert", demandQuery=demand))
    await lab.stays("bert", 0, for_seconds=3)
    # There is no exporter, and no series of any GPU, to wake anything.
    assert await lab.prometheus.query('{__name__=~"DCGM_.*"}') == []
    await lab.offer("bert", 50)
    await waking.wakes(lab, "bert")

    await waking.poll_often(lab, "bert")
    await lab.stays("bert", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)
    assert lab.timeline.path("bert", "ready") == [0], lab.story()
    lab.timeline.note("the node pool is filled")
    for node in lab.exporters:
        await lab.client.create(codecs.from_dict(manifests.node(node, lab.name, GPUS_PER_NODE)))
    await lab.prometheus.reload(everything)
    await lab.reaches("bert", 1)
    await lab.becomes("bert", "measured")
    await goes_to_zero(lab)

    await _empty(lab)
    await lab.stays("bert", 0, for_seconds=LONGER_THAN_THE_COOLDOWN)
    await lab.offer("bert", 50)
    await waking.wakes(lab, "bert")
    assert lab.path("bert") == [0, 1, 0, 1], lab.story()


async def _empty(lab: Lab) -> None:
    """Take every node away with its exporter, as the autoscaler of a node pool does."""
    lab.timeline.note("the node pool is emptied")
    await lab.prometheus.reload(lab.prometheus.scrape_configs[1:])
    for node in lab.exporters:
        await lab.client.delete(Node, node)
