"""Claims about the way to zero: an idle workload gets there in time, one in use never does."""

import random

import pytest

from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from testbed.loops.loop import Loop
from testbed.triggers import spec
from tests.stories.loops.variants import each, seeded, told


@each
async def test_when_the_load_ends_the_window_and_the_cooldown_are_waited_for(
    evidence: EvidenceSource,
) -> None:
    loop = Loop(lambda t: 60.0 if t < 0 else 0.0, evidence)
    await loop.run(900, keda=True)
    assert 300 < loop.seconds_until(0) <= 120 + 300 + 45
    assert set(loop.sizes[loop.sizes.index(0) :]) == {0}


@each
async def test_blips_of_2_percent_keep_nobody_up(evidence: EvidenceSource) -> None:
    """The desktop of a driver, a health check: below the idle level, whenever they come."""
    chance = random.Random(2)
    loop = Loop(lambda _: chance.choice([0.0, 0.0, 2.0]), evidence)
    loop.keda.last_active = loop.clock
    await loop.run(600, keda=True)
    assert loop.seconds_until(0) <= 300 + 30


MOMENTS = "samples of single moments"


@pytest.mark.slow
@each
async def test_six_short_requests_a_minute_are_seen_in_averages(evidence: EvidenceSource) -> None:
    """A request of a second every ten is 10 % of the time, for two hours."""
    loop = Loop(lambda t: 100.0 if t % 10 < 1 else 0.0, evidence, averaged=True)
    await loop.run(2 * 3600, keda=True)
    assert set(loop.sizes) == {1}
    assert loop.decisions[-1].value == 10
    loop.offered = lambda _: 0.0
    await loop.run(300)
    assert loop.decisions[-1].active is False
    assert MOMENTS not in loop.decisions[-1].reason


@pytest.mark.slow
@each
@seeded(range(6))
async def test_an_exporter_that_looks_at_single_moments_overlooks_short_requests(
    seed: int, evidence: EvidenceSource
) -> None:
    """Why an averaged metric is the better one of two that an exporter shows: the reason says so.

    A sample falls into one of them as often as they fill the time.
    """
    chance = random.Random(seed)
    loop = Loop(lambda _: 100.0 if chance.random() < 0.1 else 0.0, evidence)
    await loop.run(2 * 3600, keda=True)
    assert 0 in loop.sizes
    last = loop.decisions[loop.sizes.index(0)]
    assert last.active is False
    assert MOMENTS in last.reason


@told
@pytest.mark.parametrize("load", [0.0, 60.0])
@pytest.mark.parametrize("hpa_asks", [True, False])
async def test_a_wrong_name_neither_removes_a_pod_nor_wakes_one(
    load: float, evidence: EvidenceSource, *, hpa_asks: bool
) -> None:
    """Nothing of the scale target is measured; the HPA asks about it while it has replicas."""
    loop = Loop(lambda _: load, evidence, replicas=2, hpa_asks=hpa_asks)
    loop.trigger = spec(workload="bret")
    await loop.run(1800, keda=True)
    assert set(loop.sizes) == {2}
    assert {one.state for one in loop.decisions} == {State.UNKNOWN}
    assert all("did you mean bert" in one.reason for one in loop.decisions)

    asleep = Loop(lambda _: 0.0, evidence, replicas=0, hpa_asks=hpa_asks)
    asleep.trigger = loop.trigger
    await asleep.run(900, keda=True)
    assert set(asleep.sizes) == {0}
    asleep.wake()
    await asleep.run(900, keda=True)
    assert set(asleep.sizes[60:]) == {1}
