"""Claims about replicas that leave: the others take over their work, and no more of them go."""

import pytest

from keda_gpu_scaler.autoscaling.rules import Hpa
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from testbed.loops.loop import Loop
from tests.stories.loops.variants import each, each_source, seeded, told

pytestmark = pytest.mark.slow

seeds = seeded(range(1, 7))
fast = pytest.mark.parametrize("stabilization_seconds", [0, 60])
"""The HPA's default remembers larger recommendations for 300 s, which hides all of this."""


@each
@seeds
@fast
@pytest.mark.parametrize(("replicas", "work", "left"), [(6, 240.0, 4), (10, 480.0, 7)])
async def test_a_scale_in_is_not_followed_by_another_for_the_same_work(
    replicas: int,
    work: float,
    left: int,
    stabilization_seconds: float,
    seed: int,
    evidence: EvidenceSource,
) -> None:
    hpa = Hpa(maximum=20, stabilization_seconds=stabilization_seconds)
    loop = Loop(lambda _: work, evidence, replicas=replicas, seed=seed, hpa=hpa)
    await loop.run(1800)
    assert loop.grown == [replicas, left]


@told
@seeds
@fast
@pytest.mark.parametrize(("replicas", "work", "left"), [(3, 66.0, 1), (4, 125.0, 2)])
async def test_a_replica_that_drains_is_not_counted_twice(
    replicas: int,
    work: float,
    left: int,
    stabilization_seconds: float,
    seed: int,
    evidence: EvidenceSource,
) -> None:
    hpa = Hpa(maximum=20, stabilization_seconds=stabilization_seconds)
    loop = Loop(lambda _: work, evidence, replicas=replicas, seed=seed, hpa=hpa, grace_seconds=120)
    await loop.run(1800)
    assert loop.grown == [replicas, left]


@each_source
@seeded([2, 3, 5, 6])
async def test_a_replica_whose_node_goes_with_it_is_not_counted_twice(
    seed: int,
    evidence: EvidenceSource,
    is_direct: bool,
) -> None:
    """For a minute it is measured as before, while the others do its work already."""
    hpa = Hpa(maximum=20, stabilization_seconds=0)
    loop = Loop(lambda _: 138.0, evidence, replicas=3, seed=seed, hpa=hpa, grace_seconds=0.0)
    loop.node_leaves_seconds = 0.0
    loop.monitoring.is_direct = is_direct
    await loop.run(5400)
    assert loop.grown == [3, 2]


@each_source
@seeds
@pytest.mark.parametrize("evicted_after", [0.0, 60.0])
async def test_a_lost_node_is_replaced_and_no_more(
    evicted_after: float,
    seed: int,
    evidence: EvidenceSource,
    is_direct: bool,
) -> None:
    loop = Loop(lambda _: 203.0, evidence, replicas=3, seed=seed)
    loop.monitoring.is_direct = is_direct
    await loop.run(300)
    loop.lose(loop.pods[0], evicted_after=evicted_after)
    await loop.run(900)
    assert loop.grown == [3]


@told
@seeds
async def test_a_rolling_update_changes_nothing_without_stabilization(
    seed: int, evidence: EvidenceSource
) -> None:
    hpa = Hpa(maximum=20, stabilization_seconds=0)
    loop = Loop(lambda _: 260.0, evidence, replicas=4, seed=seed, hpa=hpa)
    await loop.run(300)
    await loop.roll_out(105, 30)
    await loop.run(900)
    assert set(loop.sizes) == {4}


@each
@seeds
async def test_work_that_rises_right_after_a_scale_in_is_answered(
    seed: int, evidence: EvidenceSource
) -> None:
    hpa = Hpa(maximum=20, stabilization_seconds=0)
    loop = Loop(lambda t: 240.0 if t < 60 else 600.0, evidence, replicas=6, seed=seed, hpa=hpa)
    await loop.run(240)
    assert loop.sizes[-1] > 4


@told
@seeds
async def test_replicas_that_were_there_for_minutes_only_leave_the_rest_their_share(
    seed: int, evidence: EvidenceSource
) -> None:
    """They did a part of the work before their own samples counted."""
    hpa = Hpa(minimum=10, maximum=20, stabilization_seconds=0)
    loop = Loop(lambda _: 375.0, evidence, replicas=6, seed=seed, start_seconds=30.0, hpa=hpa)
    await loop.run(105)
    hpa.minimum = 0
    await loop.run(600)
    assert loop.grown == [10, 6]
    assert any("those that just left" in one.reason for one in loop.decisions)
