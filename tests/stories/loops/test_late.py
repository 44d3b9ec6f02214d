"""Claims about samples that arrive late: as late as each other, or some of them, or none at all."""

import random
from collections.abc import Callable

import pytest

from keda_gpu_scaler.autoscaling.rules import Keda
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.workbench.world.loop import COLLECT_SECONDS, STEP_SECONDS
from testbed.loops.loop import BEGIN, Loop
from testbed.loops.monitoring import KUBE_STATE
from testbed.triggers import spec
from tests.stories.loops.variants import each, seeded

pytestmark = pytest.mark.slow

seeds = seeded(range(1, 7))


def _late(loop: Loop, seconds: float | Callable[[float], float]) -> Loop:
    """Let all samples of a loop arrive late, by the seconds since it began."""
    how = seconds if callable(seconds) else lambda _now: seconds
    loop.monitoring.late_seconds = lambda _target, now: how(now - loop.begin)
    return loop


def _one_in_four(seed: int) -> Callable[[float], float]:
    """Return work that fills a GPU in one of four samples, which a window never overlooks."""
    return lambda t: 100.0 * ((t // COLLECT_SECONDS + seed) % 4 == 0)


def _keda() -> Keda:
    """Return a KEDA that saw the workload active just now."""
    return Keda(last_active=BEGIN)


@each
@seeds
@pytest.mark.parametrize("seconds", [90, 170])
async def test_an_idle_workload_goes_to_zero_and_stays_there(
    seconds: float, seed: int, evidence: EvidenceSource
) -> None:
    loop = _late(Loop(lambda t: 60.0 if t < 0 else 0.0, evidence, seed=seed), seconds)
    await loop.run(3600, keda=True)
    assert set(loop.sizes[loop.sizes.index(0) :]) == {0}
    assert loop.seconds_until(0) <= 120 + 300 + 45 + seconds + STEP_SECONDS
    assert not loop.errors


@each
@seeds
async def test_a_step_asks_for_no_more_than_it_needs(seed: int, evidence: EvidenceSource) -> None:
    """What is repeated until the next sample arrives is not counted as new."""
    loop = Loop(lambda t: 60.0 if t < 300 else 340.0, evidence, seed=seed)
    await _late(loop, 150).run(2400)
    assert loop.grown == sorted(loop.grown)
    assert loop.sizes[-1] == 5


@each
@seeds
async def test_a_scale_in_is_final(seed: int, evidence: EvidenceSource) -> None:
    loop = _late(Loop(lambda _: 240.0, evidence, replicas=6, seed=seed), 150)
    await loop.run(2400)
    assert loop.grown == [6, 4]


@each
@seeds
@pytest.mark.parametrize("cooldown_seconds", [60, 300])
async def test_a_workload_that_was_woken_stays_as_it_is(
    cooldown_seconds: float, seed: int, evidence: EvidenceSource
) -> None:
    """Its owner's count is of the time before, and the HPA asks about a replica meanwhile."""
    keda = Keda(cooldown_seconds=cooldown_seconds)
    loop = Loop(lambda t: 60.0 if t > 1300 else 0.0, evidence, replicas=0, seed=seed, keda=keda)
    await _late(loop, 150).run(1200, keda=True)
    loop.wake()
    await loop.run(1800, keda=True)
    assert loop.grown == [0, 1]
    assert loop.decisions[-1].value == pytest.approx(60, abs=3)


@each
@seeds
@pytest.mark.parametrize("seconds", [0, 150])
async def test_an_end_of_all_scraping_is_no_lag(
    seconds: float, seed: int, evidence: EvidenceSource
) -> None:
    """It was idle for a moment then, and load returned unseen."""
    loop = Loop(lambda t: 0.0 if 600 < t < 700 + 30 * seed else 60.0, evidence, seed=seed)
    await _late(loop, seconds).run(700 + 10 * seed, keda=True)
    loop.monitoring.scraped_until = loop.clock
    await loop.run(1800, keda=True)
    assert set(loop.sizes) == {1}
    assert loop.monitoring.lag_seconds == seconds
    assert loop.decisions[-1].state is not State.MEASURED
    loop.monitoring.scraped_until = float("inf")
    _late(loop, 0)
    await loop.run(300, keda=True)
    assert loop.monitoring.lag_seconds == 0
    assert loop.decisions[-1].value == pytest.approx(60, abs=3)


@each
@seeds
async def test_scraping_that_stops_again_and_again_is_no_lag(
    seed: int, evidence: EvidenceSource
) -> None:
    """After minutes without any scrape the next one is as fresh as ever."""
    stopped = 170.0 + 10 * seed
    loop = Loop(_one_in_four(seed), evidence, seed=seed, keda=_keda())
    await _late(loop, lambda t: max(0.0, t % 600 - 200) if t % 600 < 200 + stopped else 0).run(
        3600, keda=True
    )
    assert min(loop.sizes) == 1
    assert not loop.monitoring.lag_seconds


@each
@seeds
async def test_one_exporter_that_is_late_is_no_lag_of_the_source(
    seed: int, evidence: EvidenceSource
) -> None:
    loop = Loop(lambda t: 180.0 if t < 1800 else 0.0, evidence, replicas=3, seed=seed)
    late = loop.pods[0].target.instance
    loop.monitoring.late_seconds = lambda target, _now: 150.0 if target == late else 0.0
    await loop.run(1800, keda=True)
    assert set(loop.sizes) == {3}
    await loop.run(1800, keda=True)
    assert loop.sizes[-1] == 0
    assert not loop.monitoring.lag_seconds


@seeds
async def test_kube_state_metrics_that_is_late_alone_is_no_lag(seed: int) -> None:
    """It is not current then, and exporters decide."""
    loop = Loop(lambda t: 240.0 if t < 1800 else 0.0, replicas=1, seed=seed)
    loop.monitoring.late_seconds = lambda target, _now: (
        150.0 if target == KUBE_STATE.instance else 0.0
    )
    await loop.run(1800, keda=True)
    assert loop.sizes[-1] == 4
    await loop.run(1800, keda=True)
    assert loop.sizes[-1] == 0
    assert not loop.monitoring.lag_seconds
    assert {one.evidence for one in loop.decisions} == {EvidenceSource.EXPORTERS}


@each
@seeds
@pytest.mark.parametrize("share", [0.05, 0.4])
async def test_a_lag_that_grows_takes_nothing_away(
    share: float, seed: int, evidence: EvidenceSource
) -> None:
    """Slowly, it is followed until it is beyond maxAge; fast, it is none."""
    loop = Loop(_one_in_four(seed), evidence, seed=seed, keda=_keda())
    await _late(loop, lambda t: share * t).run(3600, keda=True)
    assert min(loop.sizes) > 0
    assert not loop.errors


@each
@seeds
async def test_samples_that_catch_up_are_believed_at_once(
    seed: int, evidence: EvidenceSource
) -> None:
    loop = Loop(_one_in_four(seed), evidence, seed=seed, keda=_keda())
    late = 400.0 + 30 * seed
    await _late(loop, lambda t: 150.0 if t % 900 < late else 0.0).run(3600, keda=True)
    assert min(loop.sizes) > 0
    assert not loop.monitoring.lag_seconds
    loop.offered = lambda _: 60.0
    _late(loop, 0)
    await loop.run(180, keda=True)
    assert loop.decisions[-1].value == pytest.approx(60, abs=3)


@seeds
async def test_the_hpa_is_not_taken_for_silent_when_samples_catch_up(seed: int) -> None:
    """The clock of the samples leaps forward then, and that of the calls does not."""
    loop = Loop(
        lambda t: 60.0 if t > 1200 else 0.0,
        EvidenceSource.EXPORTERS,
        replicas=0,
        exporter_late_seconds=500.0,
    )
    await _late(loop, lambda t: 170.0 if t < 1560 + STEP_SECONDS * seed else 0.0).run(
        1200, keda=True
    )
    loop.wake()
    await loop.run(900, keda=True)
    asked_twice = 1245 // STEP_SECONDS
    assert all(one.active for one in loop.decisions[asked_twice:])


@each
@seeds
@pytest.mark.parametrize(("seconds", "max_age"), [(200, "3m"), (150, "1m")])
async def test_what_is_later_than_max_age_is_unknown(
    seconds: float, max_age: str, seed: int, evidence: EvidenceSource
) -> None:
    chance = random.Random(seed)
    loop = Loop(lambda _: chance.choice([0.0, 300.0]), evidence, trigger=spec(maxAge=max_age))
    await _late(loop, seconds).run(900, keda=True)
    assert set(loop.sizes) == {1}
    assert {one.state for one in loop.decisions} == {State.UNKNOWN}
