"""Claims about a pod that returns under its name on another node."""

import pytest

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from testbed.loops.loop import Loop
from testbed.triggers import spec
from tests.stories.loops.variants import seeded


@pytest.mark.slow
@seeded(range(6))
@pytest.mark.parametrize("node_seconds", [0.0, 45.0, 240.0])
@pytest.mark.parametrize("exporter", ["stays", "leaves"])
async def test_a_stateful_pod_on_another_node_is_a_new_pod(
    exporter: str, node_seconds: float, seed: int
) -> None:
    """Its model shows 100 % while it loads, which is no work."""
    loop = Loop(
        lambda _: 80.0,
        EvidenceSource.EXPORTERS,
        replicas=2,
        start_seconds=90.0,
        stateful=True,
        trigger=spec(workload="statefulset/bert"),
    )
    await loop.run(600)
    loop.grace_seconds, loop.node_seconds = 6.0 * seed, node_seconds
    old = loop.pods[0]
    loop.delete(old)
    if exporter == "leaves":
        old.unlisted = old.gone + 3 * seed
    await loop.run(1800)
    assert set(loop.sizes) == {2}
