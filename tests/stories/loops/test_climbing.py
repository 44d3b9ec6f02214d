"""Claims about how replicas grow with the work: how fast, and not further than it takes."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from keda_gpu_scaler import errors
from keda_gpu_scaler.autoscaling.rules import Hpa
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.workbench.world.loop import COLLECT_SECONDS
from testbed.loops.loop import Loop
from testbed.triggers import spec
from tests.stories.loops.variants import each, each_source, seeded, told

Work = Callable[[float], float]
CLIMBED_SECONDS = {30.0: 330, 120.0: 690, 300.0: 1410}
"""How long utilization may take from one full replica to twelve that work, by start-up time."""


@each
@pytest.mark.parametrize("aggregation", ["sum", "max", "p95"])
async def test_130_percent_of_work_becomes_two_replicas_and_never_three(
    aggregation: str, evidence: EvidenceSource
) -> None:
    loop = Loop(lambda _: 130.0, evidence, trigger=spec(aggregation=aggregation))
    await loop.run(1800)
    assert loop.grown == [2]


@pytest.mark.slow
@pytest.mark.parametrize(("start_seconds", "within"), CLIMBED_SECONDS.items())
async def test_a_saturated_climb_waits_for_starts_and_for_the_exporter_and_no_more(
    start_seconds: float, within: float
) -> None:
    loop = Loop(lambda _: 800.0, start_seconds=start_seconds)
    await loop.run(within)
    assert loop.grown == [2, 4, 7, 12]
    assert sum(pod.works(loop.begin + within) for pod in loop.pods) == 12
    await loop.run(1200)
    assert loop.sizes[-1] == max(loop.sizes) == 12


@pytest.mark.slow
@each_source
@seeded([0, 1, 2])
@pytest.mark.parametrize("start_seconds", [300.0, 420.0])
async def test_a_climb_removes_no_replica_that_it_started(
    start_seconds: float,
    seed: int,
    evidence: EvidenceSource,
    is_direct: bool,
) -> None:
    """Their models load at 0 % for longer than `warmup`."""
    trigger, within = spec(threshold="90"), 4 * (start_seconds + 85)
    loop = Loop(
        lambda _: 1000.0,
        evidence,
        start_seconds=start_seconds,
        loading=0.0,
        seed=seed,
        trigger=trigger,
    )
    loop.monitoring.is_direct = is_direct
    await loop.run(within)
    assert loop.grown == [2, 4, 7, 12]
    assert sum(pod.works(loop.begin + within) for pod in loop.pods) == 12
    await loop.run(1200)
    assert loop.grown == [2, 4, 7, 12]


@pytest.mark.slow
@told
@seeded([1, 2])
@pytest.mark.parametrize("start_seconds", [30.0, 600.0])
@pytest.mark.parametrize("node_seconds", [0.0, 300.0])
async def test_what_was_asked_for_and_is_still_to_come_is_not_asked_for_again(
    node_seconds: float, start_seconds: float, seed: int, evidence: EvidenceSource
) -> None:
    """Models that show a full GPU while they load, on nodes that have to be bought first."""
    loop = Loop(
        lambda t: 70.0 if t < 600 else 340.0,
        evidence,
        start_seconds=start_seconds,
        node_seconds=node_seconds,
        seed=seed,
    )
    await loop.run(600)
    assert loop.grown == [1]
    await loop.run(3600)
    assert loop.seconds_until(2) <= 660
    assert max(loop.sizes) <= 6
    assert loop.sizes[-1] == 5


async def test_a_lower_threshold_climbs_in_larger_steps() -> None:
    hpa = Hpa(maximum=12)
    loop = Loop(lambda _: 800.0, start_seconds=120.0, trigger=spec(threshold="50"), hpa=hpa)
    await loop.run(720)
    assert loop.grown == [3, 6, 8, 12]
    assert sum(pod.works(loop.clock) for pod in loop.pods) == 12


@pytest.mark.slow
@seeded([1, 2, 4, 0, 3, 5])
@pytest.mark.parametrize(
    ("evidence", "start_seconds"),
    [(EvidenceSource.KUBE_STATE_METRICS, 30.0), (EvidenceSource.EXPORTERS, 60.0)],
)
async def test_bursts_that_are_shorter_than_the_window_build_no_tower(
    evidence: EvidenceSource, start_seconds: float, seed: int
) -> None:
    """They have the replicas that their work needs, and no new pod brings another."""
    chance = random.Random(seed)
    busy = [chance.random() < 0.3 for _ in range(240)]
    loop = Loop(
        lambda t: 140.0 * busy[int(t // COLLECT_SECONDS)] if t >= 0 else 0.0,
        evidence,
        start_seconds=start_seconds,
    )
    await loop.run(7200)
    assert max(loop.sizes) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("evidence", "within"),
    [
        (EvidenceSource.KUBERNETES, 360),
        (EvidenceSource.KUBE_STATE_METRICS, 360),
        (EvidenceSource.EXPORTERS, 465),
    ],
)
async def test_work_that_was_queued_is_worked_off_and_the_replicas_go_again(
    within: float, evidence: EvidenceSource
) -> None:
    loop = Loop(lambda t: 20.0 if t < 0 else 240.0, evidence, queues=True, start_seconds=30.0)
    await loop.run(within)
    assert sum(pod.works(loop.clock) for pod in loop.pods) >= 4
    await loop.run(3600)
    assert max(loop.sizes) <= 8
    assert loop.sizes[-1] == 4


@each
async def test_steady_work_changes_nothing_in_an_hour(evidence: EvidenceSource) -> None:
    loop = Loop(lambda _: 120.0, evidence, replicas=2)
    await loop.run(3600, keda=True)
    assert set(loop.sizes) == {2}


async def test_above_90_no_replica_is_far_enough_from_its_target_before_it_is_full() -> None:
    with pytest.raises(errors.SpecError, match="threshold"):
        spec(threshold="91")
    loop = Loop(lambda _: 94.0, trigger=replace(spec(), threshold=91.0))
    await loop.run(3600)
    assert set(loop.sizes) == {1}
    loop = Loop(lambda _: 800.0, trigger=spec(threshold="90"))
    await loop.run(300)
    assert loop.sizes[-1] > 1
