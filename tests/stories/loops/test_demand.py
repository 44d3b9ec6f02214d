"""Claims about what demand adds: it wakes, scales up at once, and when it fails no replica goes."""

import random

import pytest

from keda_gpu_scaler.autoscaling.rules import Keda
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS
from testbed.loops.dialects import Dialect
from testbed.loops.loop import Loop
from testbed.triggers import demanding
from tests.stories.loops.variants import each, seeded, told

pytestmark = pytest.mark.slow

WAKES = demanding("sum(waiting)")
SCALES = demanding("sum(waiting)", demandThreshold="10", warmup="6m")
"""Longer than these models load, at 100 %: by exporters alone, readiness is unknown."""
ALONE = demanding("sum(waiting)", threshold="", demandThreshold="10")
"""Without a threshold: the GPUs only say whether the workload still works."""
WAITED_SECONDS = {30.0: 455, 120.0: 905, 300.0: 1805}
"""How long the same climb takes by utilization alone, by start-up time (test_climbing.py)."""


@each
@pytest.mark.parametrize("start_seconds", list(WAITED_SECONDS))
async def test_a_demand_climbs_in_a_quarter_of_the_time_and_no_further(
    start_seconds: float, evidence: EvidenceSource
) -> None:
    """Three syncs of the HPA, which at most doubles, and one start."""
    loop = Loop(
        lambda _: 800.0,
        evidence,
        start_seconds=start_seconds,
        trigger=SCALES,
        demand=lambda _: 120.0,
    )
    await loop.run(WAITED_SECONDS[start_seconds] / 4)
    assert loop.grown == [4, 8, 12]
    assert sum(pod.works(loop.clock) for pod in loop.pods) == 12
    await loop.run(1200, keda=True)
    assert set(loop.sizes[3:]) == {12}
    loop.offered, loop.demand = lambda _: 40.0, lambda _: 4.0
    await loop.run(900, keda=True)
    assert loop.sizes[-1] == 1


@each
async def test_a_gpu_node_pool_at_zero_is_woken_by_demand_and_by_nothing_else(
    evidence: EvidenceSource,
) -> None:
    """No exporter and no series of any GPU, for hours; then the node is as long in coming."""
    loop = Loop(
        lambda _: 30.0,
        evidence,
        replicas=0,
        node_seconds=240.0,
        trigger=WAKES,
        demand=lambda t: 1.0 if t >= 2 * 3600 else 0.0,
    )
    await loop.run(2 * 3600, keda=True)
    assert set(loop.sizes) == {0}
    await loop.run(1800, keda=True)
    assert set(loop.sizes[2 * 3600 // STEP_SECONDS + 1 :]) == {1}
    assert not loop.errors


@each
@seeded(range(1, 7))
async def test_a_workload_that_was_just_woken_is_not_told_that_its_load_is_0(
    seed: int, evidence: EvidenceSource
) -> None:
    """Its owner's count of replicas is as old as the last scrape, and its model loads at 0 %."""
    loop = Loop(
        lambda _: 30.0,
        evidence,
        replicas=0,
        seed=seed,
        start_seconds=100.0,
        loading=0.0,
        trigger=WAKES,
        demand=lambda t: 1.0 if t >= 300 + 15 * seed else 0.0,
    )
    await loop.run(900, keda=True)
    assert loop.sizes[-1] == 1
    assert not [one for one in loop.decisions if one.active and one.value == 0]


@each
async def test_an_idle_workload_falls_and_sleeps_for_hours(evidence: EvidenceSource) -> None:
    """Blips of 2 % included."""
    chance = random.Random(5)
    loop = Loop(
        lambda _: chance.choice([0.0, 0.0, 2.0]), evidence, trigger=WAKES, demand=lambda _: 0.0
    )
    loop.keda.last_active = loop.clock
    await loop.run(2 * 3600, keda=True)
    asleep = loop.sizes.index(0)
    assert asleep * STEP_SECONDS <= 300 + 30
    assert set(loop.sizes[asleep:]) == {0}
    assert not loop.errors


@each
async def test_a_broken_demand_blocks_the_last_step_to_zero_and_nothing_else(
    evidence: EvidenceSource,
) -> None:
    loop = Loop(lambda _: 300.0, evidence, replicas=5, trigger=WAKES)
    await loop.run(1800, keda=True)
    assert set(loop.sizes) == {5}
    loop.offered = lambda _: 0.0
    await loop.run(3600, keda=True)
    assert loop.sizes[-1] == min(loop.sizes) == 1
    loop.demand = lambda _: 0.0
    await loop.run(600, keda=True)
    assert loop.sizes[-1] == 0


@each
async def test_a_broken_demand_that_scales_holds_and_lets_the_load_climb(
    evidence: EvidenceSource,
) -> None:
    loop = Loop(lambda _: 300.0, evidence, replicas=5, trigger=SCALES)
    await loop.run(900, keda=True)
    assert set(loop.sizes) == {5}
    loop.offered = lambda _: 460.0
    await loop.run(900, keda=True)
    assert loop.sizes[-1] == max(loop.sizes) == 7
    loop.offered = lambda _: 0.0
    await loop.run(1800, keda=True)
    assert loop.sizes[-1] == 7


@each
@pytest.mark.parametrize(
    ("trigger", "demand", "seconds", "replicas"), [(WAKES, 3.0, 90, 1), (ALONE, 25.0, 300, 3)]
)
async def test_a_workload_at_zero_is_not_woken_by_an_outage_and_is_by_the_demand_after_it(
    trigger: TriggerSpec, demand: float, seconds: int, replicas: int, evidence: EvidenceSource
) -> None:
    loop = Loop(lambda _: 30.0, evidence, replicas=0, trigger=trigger, demand=lambda _: 0.0)
    await loop.run(300, keda=True)
    loop.monitoring.away_until, loop.demand = loop.clock + 1200, lambda _: demand
    await loop.run(1200, keda=True)
    assert set(loop.sizes) == {0}
    await loop.run(seconds, keda=True)
    assert loop.sizes[-1] == replicas


@told
@pytest.mark.parametrize("loading", [0.0, 100.0])
async def test_a_model_that_loads_longer_than_the_cooldown_survives_a_demand_that_gave_up(
    loading: float, evidence: EvidenceSource
) -> None:
    """A client came, waited for a minute, and went away; the model loads for ten."""
    loop = Loop(
        lambda t: 30.0 if t > 1500 else 0.0,
        evidence,
        replicas=0,
        start_seconds=600.0,
        loading=loading,
        keda=Keda(cooldown_seconds=60),
        trigger=WAKES,
        demand=lambda t: 1.0 if 600 <= t < 660 else 0.0,
    )
    await loop.run(660, keda=True)
    await loop.run(600, keda=True)
    assert set(loop.sizes[660 // STEP_SECONDS :]) == {1}
    await loop.run(600, keda=True)
    assert loop.sizes[-1] == 0


@each
async def test_bursts_that_an_exporter_overlooks_keep_their_replica_by_their_demand(
    evidence: EvidenceSource,
) -> None:
    """It reads a single moment every 30 s: most of its samples are 0, and some are 100."""
    chance = random.Random(0)
    loop = Loop(
        lambda _: 100.0 if chance.random() < 0.1 else 0.0,
        evidence,
        trigger=WAKES,
        demand=lambda _: 0.1,
    )
    await loop.run(2 * 3600, keda=True)
    assert set(loop.sizes) == {1, 2}


@each
async def test_without_threshold_full_gpus_ask_for_nothing_and_keep_the_last_replica(
    evidence: EvidenceSource,
) -> None:
    loop = Loop(lambda _: 800.0, evidence, trigger=ALONE, demand=lambda _: 37.0)
    await loop.run(900, keda=True)
    assert loop.sizes[-1] == max(loop.sizes) == 4
    loop.demand = None
    await loop.run(1800, keda=True)
    assert loop.sizes[-1] == 4, "an unknown demand holds"
    loop.demand = lambda _: 0.0
    await loop.run(1800, keda=True)
    assert loop.sizes[-1] == min(loop.sizes) == 1, "no demand, and a busy GPU"
    loop.offered = lambda _: 0.0
    await loop.run(900, keda=True)
    assert loop.sizes[-1] == 0


@told
@pytest.mark.parametrize("asks", ["aws.amazon.com/neuroncore", "cpu"])
async def test_without_threshold_servers_that_no_exporter_shows_follow_their_demand(
    asks: str, evidence: EvidenceSource
) -> None:
    """An accelerator of which no series names the pod, or none at all."""
    loop = Loop(lambda _: 30.0, evidence, trigger=ALONE, dialect=Dialect(gpus=0, resource=asks))
    loop.demand = lambda t: 77.0 if t < 1800 else 5.0
    await loop.run(7200, keda=True)
    assert loop.grown == [4, 8, 1]


@told
async def test_without_threshold_lost_exporters_remove_no_replica(evidence: EvidenceSource) -> None:
    loop = Loop(lambda _: 790.0, evidence, replicas=8, trigger=ALONE, demand=lambda _: 77.0)
    await loop.run(600, keda=True)
    for pod in loop.pods:
        pod.silent = loop.clock
    loop.demand = lambda _: 5.0
    await loop.run(2 * 3600, keda=True)
    assert set(loop.sizes) == {8}


@each
async def test_without_threshold_neither_an_outage_nor_the_first_requests_after_it_remove_a_replica(
    evidence: EvidenceSource,
) -> None:
    """The servers are scraped one after the other again, and the first ones are not all."""
    loop = Loop(lambda _: 790.0, evidence, replicas=8, trigger=ALONE, demand=lambda _: 77.0)
    await loop.run(600, keda=True)
    back = loop.clock - loop.begin + 3600
    loop.monitoring.away_until = loop.clock + 3600
    loop.monitoring.scraped_until = loop.clock
    loop.demand = lambda t: 9.0 if t < back + 45 else 77.0
    await loop.run(3600, keda=True)
    loop.monitoring.scraped_until = float("inf")
    loop.monitoring.history_since = loop.clock
    await loop.run(900, keda=True)
    assert set(loop.sizes) == {8}
