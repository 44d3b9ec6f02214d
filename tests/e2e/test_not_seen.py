"""Replicas that are there, or are asked for, and whose load no exporter shows.

What the others show is then a lower bound: it may raise the number of replicas, and never lower it.
"""

import pytest
from lightkube.resources.core_v1 import Node, Pod
from lightkube.types import PatchType

from tests.e2e import evidences
from tests.e2e.lab import Lab
from tests.e2e.longer_ago import ready_since
from tests.e2e.relay import Door
from tests.e2e.under_load import (
    LOAD,
    LONGER_THAN_THE_COOLDOWN,
    MORE_LOAD,
    REPLICAS,
    SHORT_MAX_AGE,
    goes_to_zero,
    node_of_some,
    run_under_load,
)

NEVER_SEEN_SECONDS = 1200.0
"""For so long a pod was Ready unseen: longer than an exporter takes to appear."""
AT_LEAST = 6
"""What four full replicas ask for: 400 % over 70 % per replica."""


async def raises(lab: Lab) -> None:
    """Offer more than the replicas can do, and see that they grow and never shrink."""
    began = lab.timeline.now_seconds
    await lab.offer("bert", MORE_LOAD)

    async def has_grown() -> bool:
        return (lab.replicas("bert") or 0) >= AT_LEAST

    await lab.wait(has_grown, f"bert has {AT_LEAST} replicas or more")
    path = lab.path("bert", began)
    assert path == sorted(path), lab.story()


@evidences.of_all_pods
async def test_pods_that_no_exporter_ever_shows_take_nothing_away_and_can_raise(lab: Lab) -> None:
    # The scheduler spreads four pods over three nodes: one or two are on this one.
    silent = f"{lab.name}-0"
    await lab.exporters[silent].turn(Door.SHUT)
    await lab.deploy("bert", replicas=REPLICAS, load=LOAD)
    await lab.reaches("bert", REPLICAS)
    await ready_since(lab, NEVER_SEEN_SECONDS, unseen={silent})
    # The scaler keeps the first time that it is told, and looks a few seconds back.
    ready = f'time() - kube_pod_status_ready_time{{namespace="{lab.name}"}} offset 10s'
    await lab.prometheus.wait_for(f"count({ready} >= {NEVER_SEEN_SECONDS}) == {REPLICAS}")
    await lab.autoscale("bert", lab.gpu("bert", **SHORT_MAX_AGE), min_replicas=0)
    await lab.becomes("bert", "partial")
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    assert lab.decisions("bert")[-1]["value"] is not None, lab.story()
    await raises(lab)

    await lab.exporters[silent].turn(Door.OPEN)
    await lab.reaches("bert", 7)
    await goes_to_zero(lab)


@pytest.mark.core
@evidences.of_all_pods
async def test_full_replicas_raise_although_some_are_not_seen_any_more(lab: Lab) -> None:
    await run_under_load(lab, **SHORT_MAX_AGE)
    lost = lab.exporters[await node_of_some(lab)]
    await lost.turn(Door.SHUT)
    await lab.becomes("bert", "partial")
    await raises(lab)

    await lost.turn(Door.OPEN)
    await lab.reaches("bert", 7)


@pytest.mark.core
@evidences.of_all_pods
async def test_replacements_that_wait_for_a_node_are_not_given_back(lab: Lab) -> None:
    await run_under_load(lab, **SHORT_MAX_AGE)
    kept = await node_of_some(lab)
    for node in lab.exporters:
        await _cordon(lab, node, is_cordoned=True)
    pods = [pod async for pod in lab.client.list(Pod, namespace=lab.name)]
    for pod in pods:
        assert pod.spec is not None
        assert pod.metadata is not None
        assert pod.metadata.name is not None
        if pod.spec.nodeName != kept:
            await lab.client.delete(Pod, pod.metadata.name, namespace=lab.name, grace_period=0)
    await lab.prometheus.wait_for('count(kube_pod_status_phase{phase="Pending"} == 1) >= 2')
    await lab.stays("bert", REPLICAS, for_seconds=2 * LONGER_THAN_THE_COOLDOWN)

    for node in lab.exporters:
        await _cordon(lab, node, is_cordoned=False)
    await lab.reaches("bert", REPLICAS)
    assert lab.path("bert") == [REPLICAS], lab.story()


async def _cordon(lab: Lab, node: str, *, is_cordoned: bool) -> None:
    change = {"spec": {"unschedulable": is_cordoned}}
    await lab.client.patch(Node, node, change, patch_type=PatchType.MERGE)
