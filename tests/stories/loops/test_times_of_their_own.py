"""Claims about lists, scrapes and samples that come at times of their own, and with gaps."""

import pytest

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.workbench.world.loop import COLLECT_SECONDS, STEP_SECONDS
from testbed.loops.loop import BEGIN, Loop
from testbed.loops.monitoring import Scrapes, each_at_its_own_second
from tests.stories.loops.variants import seeded

seeds = seeded(range(10))


def _at_its_own_second(loop: Loop, seed: int) -> Loop:
    """Let kube-state-metrics and each exporter be scraped at seconds of their own."""
    every = 30 if seed % 2 else 60
    loop.monitoring.list_scrapes = Scrapes(every, 7 * seed % every)
    loop.monitoring.exporter_scrapes = each_at_its_own_second(seed)
    return loop


@seeds
async def test_a_scale_in_of_an_idle_workload_makes_zero_no_later(seed: int) -> None:
    """The list still shows for a while the pod that went, and its exporter no more."""
    loop = _at_its_own_second(Loop(lambda t: 200.0 if t < 0 else 0.0, replicas=3, seed=seed), seed)
    loop.keda.last_active = loop.clock
    await loop.run(900, keda=True)
    assert loop.sizes.index(0) * STEP_SECONDS <= 120 + 300 + 60


@pytest.mark.slow
@seeds
async def test_a_load_that_rises_and_falls_around_a_size_changes_it_once(seed: int) -> None:
    """During a hold the HPA has no recommendation, and forgets what it asked for."""
    loop = Loop(lambda t: 168.0 + 84.0 * ((t + 48 * seed) % 480) / 480, replicas=3, seed=seed)
    await _at_its_own_second(loop, seed).run(7200)
    assert len(loop.grown) <= 2


@pytest.mark.slow
@seeds
async def test_where_no_series_shows_requests_pods_without_an_exporter_still_count(
    seed: int,
) -> None:
    """A kube-state-metrics with a list of allowed metrics: what a pod asks for is unknown."""
    loop = Loop(lambda _: 280.0, replicas=4, seed=seed, has_exporter=lambda number: number > 1)
    loop.monitoring.shows_requests = False
    await _at_its_own_second(loop, seed).run(5400)
    assert min(loop.sizes) == 4


@seeds
async def test_the_first_samples_after_a_gap_take_no_busy_replica(seed: int) -> None:
    """Every other one is idle: two of them are not the mean of a load in bursts."""
    loop = Loop(lambda t: 200.0 * ((t // COLLECT_SECONDS + seed) % 2), replicas=2, seed=seed)
    await _at_its_own_second(loop, seed).run(600)
    loop.monitoring.away_until = loop.monitoring.history_since = (
        loop.clock + 400 + seed * STEP_SECONDS
    )
    await loop.run(1200)
    assert min(loop.sizes) >= 2


@seeds
@pytest.mark.parametrize("start_seconds", [110.0, 119.0])
async def test_warmup_protects_for_as_long_as_it_says(start_seconds: float, seed: int) -> None:
    """By exporters alone: a pod that loads at 100 % for nearly two minutes brings no other."""
    loop = Loop(
        lambda _: 30.0,
        EvidenceSource.EXPORTERS,
        replicas=0,
        start_seconds=start_seconds,
        begin=BEGIN + 3 * seed,
    )
    loop.monitoring.exporter_scrapes = lambda _target: Scrapes(25, 2 * seed)
    await loop.run(60)
    loop.wake()
    await loop.run(900)
    assert max(loop.sizes) == 1
