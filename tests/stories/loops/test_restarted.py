"""Claims about a scaler that restarts beside another one: it never says less than that one."""

import math
import random

import pytest

from keda_gpu_scaler.autoscaling.rules import Hpa
from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.workbench.world.loop import COLLECT_SECONDS, NEVER, STEP_SECONDS
from testbed.loops.loop import Loop
from tests.stories.loops.variants import each, seeded

pytestmark = pytest.mark.slow

THRESHOLD = 70
seeds = seeded(range(6))


def _restarting(loop: Loop, seed: int, seconds: float = 300.0) -> Loop:
    """Let the second scaler restart at random, after so long on average."""
    chance = random.Random(seed)
    loop.restarts = lambda: chance.random() < STEP_SECONDS / seconds
    return loop


def _asks(replicas: int, decided: Decision) -> int:
    """Return for how many replicas it asks; to hold is to ask for those there are."""
    return replicas if decided.value is None else math.ceil(decided.value / THRESHOLD - 1e-6)


def _says_no_less(loop: Loop, *, nor_more: bool = False) -> None:
    """One that has just started may not know yet whose newest samples count."""
    for replicas, first, second in loop.beside:
        why = f"{first.reason} / {second.reason}"
        asks_less = _asks(replicas, second) < min(replicas, _asks(replicas, first))
        assert not asks_less or "in the newest samples" in first.reason, why
        asks_more = _asks(replicas, second) > max(replicas, _asks(replicas, first))
        assert not (nor_more and asks_more), why
        assert second.active or not first.active, why
        assert second.active is not False or first.active is False, why


@each
@seeds
async def test_after_replicas_left_it_takes_no_more_of_them(
    seed: int, evidence: EvidenceSource
) -> None:
    """What those did that ended before it began, it does not know."""
    loop = Loop(lambda _: 480.0, evidence, replicas=10, seed=seed)
    loop.hpa = Hpa(maximum=20, stabilization_seconds=0)
    await _restarting(loop, seed, 60.0).run(900)
    assert min(loop.sizes) == 7
    _says_no_less(loop)


@seeds
async def test_a_bursty_gpu_without_its_pod_is_as_busy_for_it(seed: int) -> None:
    loop = Loop(
        lambda t: 100.0 if (t // COLLECT_SECONDS + seed) % 4 == 0 else 0.0, EvidenceSource.EXPORTERS
    )
    await _restarting(loop, seed).run(600, keda=True)
    loop.pods[0].unnamed = (loop.clock + seed * STEP_SECONDS, NEVER)
    await loop.run(3000, keda=True)
    _says_no_less(loop)


@seeds
async def test_replicas_that_no_exporter_shows_are_there_for_it_if_the_hpa_asks(seed: int) -> None:
    loop = Loop(
        lambda t: 60.0 if t > 300 else 0.0,
        EvidenceSource.EXPORTERS,
        replicas=0,
        exporter_late_seconds=2400.0,
    )
    await _restarting(loop, seed).run(300, keda=True)
    loop.wake()
    await loop.run(3600, keda=True)
    _says_no_less(loop)


@seeds
async def test_a_pod_that_went_with_its_node_is_missing_for_it_as_long(seed: int) -> None:
    """Of the hour before, it knows only what was at every second minute."""
    loop = Loop(lambda t: 120.0 if t < 600 else 0.0, EvidenceSource.EXPORTERS, replicas=2)
    await _restarting(loop, seed).run(300)
    loop.pods[0].unlisted = loop.clock
    await loop.run(300)
    loop.delete(loop.pods[0])
    loop.pods[0].gone = NEVER
    await loop.run(4500)
    _says_no_less(loop)


@each
@seeds
async def test_an_outage_in_which_it_restarts_is_no_error_where_replicas_are_known(
    seed: int, evidence: EvidenceSource
) -> None:
    """The HPA asks about them, or the cluster lists them."""
    loop = Loop(lambda _: 60.0, evidence)
    await _restarting(loop, seed).run(300, keda=True)
    loop.monitoring.away_until = loop.clock + 900
    await loop.run(1500, keda=True)
    assert set(loop.sizes) == {1}
    _says_no_less(loop)


direct = pytest.mark.parametrize("evidence", [EvidenceSource.KUBERNETES, EvidenceSource.EXPORTERS])
"""A source that is scraped directly has no past."""


@direct
@seeds
async def test_without_a_past_it_holds_until_its_window_is_full(
    seed: int, evidence: EvidenceSource
) -> None:
    """The first samples of a load in bursts are not its mean."""
    loop = Loop(
        lambda t: 480.0 if t % (COLLECT_SECONDS * 8) < COLLECT_SECONDS * 3 else 0.0,
        evidence,
        replicas=7,
        seed=seed,
    )
    loop.monitoring.is_direct = True
    await _restarting(loop, seed).run(3600)
    _says_no_less(loop, nor_more=True)


def _without_past(evidence: EvidenceSource, seed: int, replicas: int) -> Loop:
    """Return a loop without the HPA's patience, in which both scalers scrape the exporters."""
    hpa = Hpa(maximum=20, stabilization_seconds=0)
    loop = Loop(lambda _: 480.0, evidence, replicas=replicas, seed=seed, hpa=hpa)
    loop.monitoring.is_direct = True
    return _restarting(loop, seed, 60.0)


@direct
@seeds
async def test_without_a_past_it_takes_no_more_replicas_after_some_left(
    seed: int, evidence: EvidenceSource
) -> None:
    loop = _without_past(evidence, seed, 10)
    await loop.run(900)
    _says_no_less(loop)


@direct
@seeds
async def test_without_a_past_it_takes_no_more_in_a_rollout(
    seed: int, evidence: EvidenceSource
) -> None:
    loop = _without_past(evidence, seed, 8)
    loop.offered = lambda _: 540.0
    await loop.roll_out(75)
    await loop.run(600)
    _says_no_less(loop)
