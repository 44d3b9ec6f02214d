"""Pods that are deleted and terminate slowly, and completed pods that exporters still name.

By exporters alone a pod that terminates or has completed is not known as such: while it is shown,
it counts as what its GPU shows. These scenarios show what follows from that.
"""

import pytest
from lightkube.resources.core_v1 import Pod
from lightkube.types import PatchType

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from tests.e2e import evidences
from tests.e2e.lab import Lab
from tests.e2e.under_load import (
    LOAD,
    LONGER_THAN_THE_COOLDOWN,
    REPLICAS,
    goes_to_zero,
    run_under_load,
    the_hpa_has_a_number,
)

DRAIN_SECONDS = 15
FOUR_WORK_AND_TWO_DRAIN = (
    'count(DCGM_FI_DEV_GPU_UTIL{pod!=""} == 60) == 4'
    ' and count(DCGM_FI_DEV_GPU_UTIL{pod!=""} == 50) == 2'
)


async def scale_in_with_slow_drain(lab: Lab) -> None:
    """Take two of six replicas away, which finish their work beside the whole load."""
    await lab.simulator.change("bert", draining_percent=50)
    await lab.deploy("bert", replicas=6, load=240, drain=f"{DRAIN_SECONDS}s")
    await lab.reaches("bert", 6)
    # As by default, a scale-in waits until the window shows the load of the remaining pods.
    await lab.autoscale("bert", lab.gpu("bert"), min_replicas=6, stabilization_seconds=10)
    await the_hpa_has_a_number(lab)
    await lab.patch("bert", minReplicaCount=0)
    await lab.reaches("bert", 4)
    await lab.prometheus.wait_for(FOUR_WORK_AND_TWO_DRAIN)


@evidences.of_all_pods
async def test_pods_that_drain_slowly_bring_no_replica_back(lab: Lab) -> None:
    await scale_in_with_slow_drain(lab)
    await lab.stays("bert", 4, for_seconds=DRAIN_SECONDS + 5)
    assert lab.path("bert") == [6, 4], lab.story()
    await goes_to_zero(lab)


@pytest.mark.parametrize("lab", [EvidenceSource.EXPORTERS], indirect=True, ids=str)
async def test_pods_that_drain_unknown_to_anybody_count_as_what_they_show(lab: Lab) -> None:
    await scale_in_with_slow_drain(lab)
    # 240 % and twice 50 % over 70 %: 4.9, so 5.
    await lab.reaches("bert", 5)
    await lab.reaches("bert", 4)
    await lab.stays("bert", 4, for_seconds=DRAIN_SECONDS + 5)
    assert lab.path("bert") == [6, 4, 5, 4], lab.story()
    # A pod that was idle has nothing to finish.
    await lab.simulator.change("bert", draining_percent=0)
    await goes_to_zero(lab)


async def evict_one(lab: Lab) -> None:
    """Have one pod fail as the kubelet does when memory runs out: its object stays."""
    [pod, *_] = [each async for each in lab.client.list(Pod, namespace=lab.name)]
    assert pod.metadata is not None
    assert pod.metadata.name is not None
    lab.timeline.note(f"{pod.metadata.name} is evicted")
    unready = [{"type": "Ready", "status": "False", "reason": "PodFailed"}]
    status = {"phase": "Failed", "reason": "Evicted", "conditions": unready}
    await lab.client.patch(
        Pod.Status,
        pod.metadata.name,
        {"status": status},
        namespace=lab.name,
        patch_type=PatchType.STRATEGIC,
    )


async def run_with_one_completed(lab: Lab, percent: float) -> None:
    """Evict one replica of those under load; another one comes, and the exporter names both."""
    await lab.simulator.change("bert", completed_percent=percent)
    await run_under_load(lab)
    await evict_one(lab)
    named = f'count(DCGM_FI_DEV_GPU_UTIL{{pod!=""}}) == {REPLICAS + 1}'
    await lab.prometheus.wait_for(named)
    shown = f"sum(DCGM_FI_DEV_GPU_UTIL) > {LOAD - 10 + percent}"
    await lab.prometheus.wait_for(shown)


async def follow_the_load_to_zero(lab: Lab) -> None:
    """The completed pod causes no scale-in, and keeps no replica."""
    await lab.stays("bert", REPLICAS, for_seconds=LONGER_THAN_THE_COOLDOWN)
    await lab.offer("bert", 120)
    await lab.reaches("bert", 2)
    await lab.stays("bert", 2, for_seconds=LONGER_THAN_THE_COOLDOWN)
    await goes_to_zero(lab)
    assert lab.path("bert") == sorted(lab.path("bert"), reverse=True), lab.story()


@evidences.each()
async def test_a_completed_pod_that_is_still_named_changes_nothing(lab: Lab) -> None:
    await run_with_one_completed(lab, 0)
    await follow_the_load_to_zero(lab)


@evidences.of_all_pods
async def test_a_completed_pod_whose_gpu_works_for_others_does_not_count(lab: Lab) -> None:
    await run_with_one_completed(lab, 80)
    await follow_the_load_to_zero(lab)
