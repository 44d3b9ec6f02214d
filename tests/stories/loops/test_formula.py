"""Claims about a trigger in a formula of scalingModifiers, where zero is allowed.

KEDA judges activity by the formula's value, and a hold gives it none.
"""

from collections.abc import Callable
from typing import Any

import pytest

from keda_gpu_scaler.autoscaling.rules import Keda
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from testbed.loops.loop import BEGIN, Loop, formula_is_active
from testbed.triggers import demanding, spec
from tests.stories.loops.variants import each, told

BY_FORMULA = spec(forFormula="true")
WAKES = demanding("router_requests", forFormula="true")


def _alone(gpu: float, _seconds: float) -> float:
    return gpu / 70


def _with_queue(gpu: float, _seconds: float) -> float:
    return gpu / 70 + 3 / 1_000_000


def _one_more(gpu: float, _seconds: float) -> float:
    return gpu / 70 + min(gpu, 1)


formulas = pytest.mark.parametrize("formula", [_alone, _with_queue])
Formula = Callable[[float, float], float]


def _loop(
    evidence: EvidenceSource,
    formula: Formula,
    offered: Callable[[float], float] = lambda _: 230.0,
    **fields: Any,
) -> Loop:
    given: dict[str, Any] = {"replicas": 4, "trigger": BY_FORMULA} | fields
    keda = Keda(cooldown_seconds=60, last_active=BEGIN)
    return Loop(offered, evidence, formula=formula, keda=keda, **given)


@pytest.mark.parametrize(
    ("value", "target", "active"),
    [(None, 0.0, False), (0.0, 0.0, False), (0.1, 0.0, True), (1.0, 1.0, False)],
)
def test_a_formula_without_a_value_is_inactive(
    value: float | None, target: float, *, active: bool
) -> None:
    assert formula_is_active(value, target) is active


@each
@formulas
async def test_an_outage_longer_than_the_cooldown_takes_no_replica(
    evidence: EvidenceSource, formula: Formula
) -> None:
    loop = _loop(evidence, formula)
    await loop.run(600, keda=True)
    assert set(loop.sizes) == {4}
    loop.monitoring.away_until = loop.clock + 1200
    await loop.run(2400, keda=True)
    assert set(loop.sizes) == {4}


@each
@formulas
async def test_without_the_key_keda_takes_all_replicas(
    evidence: EvidenceSource, formula: Formula
) -> None:
    """A fact about KEDA, which the key answers."""
    loop = _loop(evidence, formula, trigger=spec())
    await loop.run(600, keda=True)
    loop.monitoring.away_until = loop.clock + 1200
    await loop.run(1200, keda=True)
    assert loop.sizes[-1] == 0


@told
@formulas
async def test_one_exporter_of_several_that_is_down_takes_no_replica(
    evidence: EvidenceSource, formula: Formula
) -> None:
    loop = _loop(evidence, formula, replicas=3, offered=lambda t: 190.0 if t < 600 else 100.0)
    await loop.run(600, keda=True)
    loop.pods[0].silent = loop.clock
    await loop.run(1800, keda=True)
    assert min(loop.sizes) == 3
    assert max(loop.sizes) == 3


@each
@formulas
async def test_a_rollout_with_a_surge_in_an_outage_is_adopted_by_nobody(
    evidence: EvidenceSource, formula: Formula
) -> None:
    loop = _loop(evidence, formula)
    await loop.run(600, keda=True)
    loop.monitoring.away_until = loop.clock + 1800
    await loop.run(300, keda=True)
    await loop.roll_out(90, keda=True)
    assert set(loop.sizes) == {4}


@each
@pytest.mark.parametrize(("formula", "grown"), [(_alone, [0, 1, 2]), (_one_more, [0, 1, 3])])
async def test_it_wakes_by_its_demand_follows_the_load_and_goes_when_it_is_idle(
    evidence: EvidenceSource, formula: Formula, grown: list[int]
) -> None:
    loop = _loop(
        evidence,
        formula,
        trigger=WAKES,
        replicas=0,
        offered=lambda t: 120.0 if 600 <= t < 1800 else 0.0,
        demand=lambda t: 4.0 if 600 <= t < 1800 else 0.0,
    )
    await loop.run(600, keda=True)
    assert set(loop.sizes) == {0}
    await loop.run(900, keda=True)
    assert loop.grown[:3] == grown
    await loop.run(2400, keda=True)
    assert loop.sizes[-1] == 0
