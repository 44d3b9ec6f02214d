"""Claims about what the HPA's calls tell: it asks about a workload with replicas, and no other."""

import pytest

from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS
from testbed.loops.loop import Loop
from tests.stories.loops.variants import seeded

pytestmark = pytest.mark.slow

seeds = seeded(range(6))


@seeds
async def test_a_node_that_goes_right_after_its_last_pod_wakes_nothing(seed: int) -> None:
    """By its exporter nothing is known of the end: it went seconds after the pod."""
    loop = Loop(
        lambda t: 60.0 if t < 0 else 0.0,
        EvidenceSource.EXPORTERS,
        grace_seconds=2.0 + seed,
        node_leaves_seconds=4.0 + 2 * seed,
    )
    await loop.run(2 * 3600, keda=True)
    asleep = loop.sizes.index(0)
    assert set(loop.sizes[asleep:]) == {0}
    assert loop.replica_hours < 0.15
    assert not loop.errors


@seeds
@pytest.mark.parametrize("hpa_asks", [True, False])
async def test_a_node_that_is_lost_at_one_idle_replica_zeroes_nothing_in_use(
    hpa_asks: bool,
    seed: int,
) -> None:
    """The load returns on a new node whose exporter is late."""
    loop = Loop(
        lambda t: 60.0 if t < 0 or t > 500 else 0.0,
        EvidenceSource.EXPORTERS,
        exporter_late_seconds=600.0 + 60 * seed,
        hpa_asks=hpa_asks,
    )
    await loop.run(150 + 30 * seed, keda=True)
    assert loop.sizes[-1] == 1
    lost = loop.pods[0]
    lost.unlisted = loop.clock
    loop.delete(lost)
    await loop.run(3600, keda=True)
    assert set(loop.sizes) == {1}


@seeds
async def test_without_calls_of_the_hpa_a_lost_pod_is_as_unknown_as_ever(seed: int) -> None:
    """With `useCachedMetrics` its silence says nothing."""
    loop = Loop(
        lambda t: 60.0 if t < 0 or t > 500 + 60 * seed else 0.0,
        EvidenceSource.EXPORTERS,
        hpa_asks=False,
    )
    await loop.run(240, keda=True)
    loop.pods[0].unlisted = loop.clock
    await loop.run(3600, keda=True)
    assert set(loop.sizes) == {1}


@seeds
@pytest.mark.parametrize("replicas", [0, 1])
async def test_an_exporter_that_is_later_than_the_cooldown_zeroes_nothing(
    replicas: int, seed: int
) -> None:
    """With one replica before, a pod is remembered that has ended; without, there is none."""
    loop = Loop(
        lambda t: 60.0 if t > 1200 else 0.0,
        EvidenceSource.EXPORTERS,
        replicas=replicas,
        start_seconds=30.0 + 15 * seed,
        exporter_late_seconds=400.0 + 60 * seed,
    )
    await loop.run(1200, keda=True)
    assert loop.sizes[-1] == 0
    loop.wake()
    await loop.run(2400, keda=True)
    assert set(loop.sizes[1200 // STEP_SECONDS :]) == {1}
    assert not loop.errors
    assert loop.decisions[-1].state is State.MEASURED


@seeds
async def test_an_exporter_that_is_later_than_start_timeout_zeroes_nothing(seed: int) -> None:
    loop = Loop(
        lambda t: 60.0 if t > 300 else 0.0,
        EvidenceSource.EXPORTERS,
        replicas=0,
        exporter_late_seconds=3600.0 + 600 * seed,
    )
    await loop.run(300, keda=True)
    loop.wake()
    await loop.run(3 * 3600, keda=True)
    assert set(loop.sizes[300 // STEP_SECONDS :]) == {1}
    loop.offered = lambda _: 0.0
    await loop.run(900, keda=True)
    assert loop.sizes[-1] == 0
