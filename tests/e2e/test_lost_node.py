"""A node is lost with its exporter: its pods are listed for long, and their load is unknown.

No replica goes because of that. Once the pods are deleted and their replacements report, the
workload is like any other, and goes to zero when it is idle.
"""

from collections.abc import AsyncIterator, Iterable

from lightkube.resources.core_v1 import Node, Pod
from lightkube.types import PatchType

from tests.e2e import evidences
from tests.e2e.lab import Lab
from tests.e2e.relay import Door
from tests.e2e.under_load import (
    LESS_LOAD,
    LOAD,
    LONGER_THAN_THE_COOLDOWN,
    REPLICAS,
    SHORT_MAX_AGE,
    goes_to_zero,
    node_of_some,
    run_under_load,
)

GIVE_UP = {"GIVE_UP": "60s"}
"""Instead of an hour: by exporters alone nothing else shows that the pods have gone."""


async def _lose(lab: Lab, node: str) -> list[str]:
    """Lose a node as with a cut cable, and return its pods: requests to it get no answer."""
    lab.timeline.note(f"{node} is lost")
    await lab.exporters[node].turn(Door.JAMMED)
    cordon = {"spec": {"unschedulable": True}}
    await lab.client.patch(Node, node, cordon, patch_type=PatchType.MERGE)
    pods = [pod async for pod in _pods_on(lab, node)]
    for pod in pods:
        lost = {"metadata": {"annotations": {"e2e/unreachable": "true"}}}
        await lab.client.patch(Pod, pod, lost, namespace=lab.name, patch_type=PatchType.MERGE)
    return pods


async def _pods_on(lab: Lab, node: str) -> AsyncIterator[str]:
    found = lab.client.list(Pod, namespace=lab.name, fields={"spec.nodeName": node})
    async for pod in found:
        assert pod.metadata is not None
        assert pod.metadata.name is not None
        yield pod.metadata.name


async def _give_up(lab: Lab, pods: Iterable[str], *, by_force: bool) -> None:
    """Delete lost pods. Without force they stay until their node says that they have ended."""
    lab.timeline.note(f"{', '.join(pods)} deleted{' by force' if by_force else ''}")
    grace_period = 0 if by_force else 30
    for pod in pods:
        await lab.client.delete(Pod, pod, namespace=lab.name, grace_period=grace_period)


@evidences.each_with("how", ["evicted", "forced"])
async def test_a_lost_node_takes_nothing_away_and_keeps_no_idle_workload_up(
    lab: Lab, how: str
) -> None:
    await lab.scaler.restart(**GIVE_UP)
    await run_under_load(lab, **SHORT_MAX_AGE)
    lost = await _lose(lab, await node_of_some(lab))
    await lab.becomes("bert", "partial")
    await lab.offer("bert", LESS_LOAD)
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)

    await lab.offer("bert", LOAD)
    await _give_up(lab, lost, by_force=how == "forced")
    replaced = f'count(DCGM_FI_DEV_GPU_UTIL{{pod=~"bert-.*"}}) == {REPLICAS}'
    await lab.prometheus.wait_for(replaced)
    assert lab.path("bert") == [REPLICAS], lab.story()
    await goes_to_zero(lab)
