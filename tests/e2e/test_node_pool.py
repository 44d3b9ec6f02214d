"""A GPU node pool at zero: there is no exporter, and no series of any GPU, to wake anything.

Only a demand can: the GPUs of another workload are in the same pool, or show nothing of this one.
"""

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from tests.e2e import evidences, node_pool, router, streams, waking
from tests.e2e.lab import Lab
from tests.e2e.under_load import LONGER_THAN_THE_COOLDOWN, goes_to_zero


@evidences.each(core=EvidenceSource.EXPORTERS)
async def test_an_empty_node_pool_is_filled_by_demand_and_emptied_again(lab: Lab) -> None:
    exporters = await node_pool.empty(lab)
    await lab.prometheus.restart_empty()
    demand = router.offered(lab.name, "bert")
    await lab.deploy("bert")
    await waking.asleep(lab, "bert", streams.push(lab, "bert", demandQuery=demand))
    await lab.stays("bert", 0, for_seconds=3)
    assert await lab.prometheus.query(node_pool.ANY_GPU) == []
    await lab.offer("bert", 50)
    await waking.wakes(lab, "bert")

    await waking.poll_often(lab, "bert")
    await lab.stays("bert", 1, for_seconds=LONGER_THAN_THE_COOLDOWN)
    assert lab.timeline.path("bert", "ready") == [0], lab.story()
    await node_pool.fill(lab, exporters)
    await lab.reaches("bert", 1)
    await lab.becomes("bert", "measured")
    await goes_to_zero(lab)

    await node_pool.empty(lab)
    await lab.stays("bert", 0, for_seconds=LONGER_THAN_THE_COOLDOWN)
    await lab.offer("bert", 50)
    await waking.wakes(lab, "bert")
    assert lab.path("bert") == [0, 1, 0, 1], lab.story()
