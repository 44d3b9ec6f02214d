"""Claims about exporters that answer and do not show what there is."""

import random
from collections.abc import Callable

import pytest

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.workbench.world.loop import COLLECT_SECONDS, NEVER, STEP_SECONDS
from testbed.loops.loop import Loop
from tests.stories.loops.variants import each_source, seeded

seeds = seeded(range(6))


def _bursts(seed: int, share: float) -> Callable[[float], float]:
    """Return work that fills a GPU in this share of the exporter's samples."""
    chance = random.Random(seed)
    busy = [chance.random() < share for _ in range(400)]
    return lambda t: 100.0 * busy[int(t // COLLECT_SECONDS)]


@seeds
async def test_an_exporter_that_loses_its_map_of_pods_takes_no_bursty_workload_away(
    seed: int,
) -> None:
    """Three of four samples are idle, which is less than activationWindow."""
    loop = Loop(
        lambda t: 100.0 if (t // COLLECT_SECONDS + seed) % 4 == 0 else 0.0, EvidenceSource.EXPORTERS
    )
    await loop.run(600, keda=True)
    loop.pods[0].unnamed = (loop.clock + seed * STEP_SECONDS, NEVER)
    await loop.run(3000, keda=True)
    assert min(loop.sizes) > 0
    assert not loop.errors


@seeds
async def test_a_process_outside_kubernetes_on_the_gpu_of_a_pod_that_went_blocks_no_zero(
    seed: int,
) -> None:
    loop = Loop(lambda t: 60.0 if t < 0 else 0.0, EvidenceSource.EXPORTERS)
    await loop.run(900, keda=True)
    assert loop.sizes[-1] == 0
    loop.pods[0].foreign_since = loop.clock + seed * 120
    await loop.run(2 * 3600, keda=True)
    assert set(loop.sizes[900 // STEP_SECONDS :]) == {0}


@seeds
async def test_one_exporter_of_two_without_its_map_of_pods_lowers_nothing(seed: int) -> None:
    """Every fourth sample is idle, for longer than the HPA remembers larger numbers."""
    loop = Loop(
        lambda t: 2 * 75.0 * ((t // COLLECT_SECONDS + seed) % 4 > 0),
        EvidenceSource.EXPORTERS,
        replicas=2,
    )
    await loop.run(600)
    loop.pods[0].unnamed = (loop.clock + seed * STEP_SECONDS, NEVER)
    await loop.run(1800)
    assert set(loop.sizes) == {2}


@pytest.mark.slow
@each_source
async def test_scrapes_that_fail_now_and_then_keep_no_replica(
    evidence: EvidenceSource,
    is_direct: bool,
) -> None:
    """Of twenty exporters there is hardly an instant at which all of them answer."""
    loop = Loop(lambda t: 1400.0 if t < 300 else 600.0, evidence, replicas=20)
    loop.monitoring.is_direct = is_direct
    for pod in loop.pods:
        pod.failing = 0.2
    await loop.run(1200)
    assert loop.sizes[-1] == 9


@seeds
async def test_a_blank_exporter_takes_no_busy_workload_away(seed: int) -> None:
    loop = Loop(_bursts(seed, 0.5), EvidenceSource.EXPORTERS)
    await loop.run(600, keda=True)
    loop.pods[0].blank = (loop.clock, loop.clock + 600)
    await loop.run(1200, keda=True)
    assert min(loop.sizes) == 1
