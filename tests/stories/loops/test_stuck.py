"""Claims about GPUs with two metrics of their load, of which one is wrong."""

import random

import pytest

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.workbench.world.loop import COLLECT_SECONDS, STEP_SECONDS
from testbed.loops.loop import Loop
from testbed.loops.monitoring import Scrapes
from testbed.loops.pods import SimPod
from testbed.triggers import spec
from tests.stories.loops.variants import each, seeded

STUCK = "is stuck at 0"


def _stuck(_pod: SimPod, _now: float) -> float:
    return 0.0


def _is_stuck(loop: Loop) -> list[bool]:
    return [STUCK in decision.reason for decision in loop.decisions]


@each
@pytest.mark.parametrize("stuck", [1, 2])
async def test_busy_gpus_whose_average_is_stuck_keep_their_replicas(
    evidence: EvidenceSource, stuck: int
) -> None:
    """One GPU of two, and both of them."""
    loop = Loop(lambda _: 2 * 75.0, evidence, replicas=2)
    loop.monitoring.average = lambda pod, _: 0.0 if pod.number < stuck else None
    await loop.run(1800, keda=True)
    assert set(loop.sizes) == {2}
    assert all(_is_stuck(loop))


@each
async def test_work_with_pauses_beside_a_stuck_average_is_never_idle(
    evidence: EvidenceSource,
) -> None:
    """Three of four samples are idle, which is less than activationWindow."""
    loop = Loop(
        lambda t: 100.0 if t // COLLECT_SECONDS % 4 == 0 else 0.0,
        evidence,
        trigger=spec(warmup="0s"),
    )
    loop.monitoring.average = _stuck
    await loop.run(3600, keda=True)
    assert min(loop.sizes) > 0
    assert all(decision.active for decision in loop.decisions)


@each
async def test_busy_gpus_whose_other_metric_shows_no_number_for_minutes_keep_their_replicas(
    evidence: EvidenceSource,
) -> None:
    """A metric that is known to be stuck is not believed while no number stands beside it."""
    loop = Loop(lambda _: 2 * 75.0, evidence, replicas=2)
    loop.monitoring.average = _stuck
    await loop.run(300)
    for pod in loop.pods:
        pod.refused_since = loop.clock
    await loop.run(180)
    assert all(decision.value in (None, 150) for decision in loop.decisions)


async def test_a_workload_whose_average_is_stuck_goes_to_zero_when_it_is_idle() -> None:
    loop = Loop(lambda t: 60.0 if t < 0 else 0.0, EvidenceSource.KUBE_STATE_METRICS)
    loop.monitoring.average = _stuck
    await loop.run(1200, keda=True)
    assert loop.sizes[-1] == 0


@seeded(range(6))
@pytest.mark.parametrize("scrape_seconds", [STEP_SECONDS, COLLECT_SECONDS])
async def test_an_average_that_is_one_collection_late_is_not_stuck(
    seed: int, scrape_seconds: int
) -> None:
    """Work of all lengths begins and ends, and the samples show it before the average does."""
    chance = random.Random(seed)
    busy = [100.0 * (chance.random() < 0.5) for _ in range(400)]
    loop = Loop(lambda t: busy[int(t // COLLECT_SECONDS)], EvidenceSource.KUBE_STATE_METRICS)
    loop.monitoring.exporter_scrapes = lambda _: Scrapes(scrape_seconds, seed)
    loop.monitoring.average = lambda pod, now: pod.value(now - COLLECT_SECONDS)
    await loop.run(3600)
    assert not any(_is_stuck(loop))
