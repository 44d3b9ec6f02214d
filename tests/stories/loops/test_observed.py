"""Claims about a trigger that one process observes, and that KEDA asks another one about."""

from collections.abc import Callable

import pytest

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.evaluator.evaluator import Caller
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from testbed.loops.loop import Loop
from testbed.triggers import BERT
from tests.stories.loops.variants import each

pytestmark = pytest.mark.slow

Offered = Callable[[float], float]


async def _watched(loop: Loop) -> list[tuple[int | None, int | None]]:
    """Observe the trigger of a loop; return what each asks for, the live one first."""
    beside = loop.evaluator(is_observing=True)
    asked_for: list[tuple[int | None, int | None]] = []

    async def observe(_decided: Decision, _timeout_seconds: float | None) -> None:
        await beside.evaluate(BERT, loop.trigger, None, Caller.STREAM)
        (live,), (observed,) = loop.first.summaries(), beside.summaries()
        asked_for.append((live.recommended, observed.recommended))

    loop.also = observe
    return asked_for


@each
@pytest.mark.parametrize(
    ("offered", "away_seconds"),
    [
        pytest.param(lambda t: 60.0 if t < 0 else 60.0 + t / 4, 0, id="a climb"),
        pytest.param(lambda t: 60.0 if t < 0 else 0.0, 0, id="an idle workload"),
        pytest.param(lambda _: 150.0, 900, id="an outage"),
        pytest.param(lambda t: 60.0 if t < 0 else 0.0, 900, id="an outage while it is idle"),
    ],
)
async def test_it_asks_for_what_the_live_trigger_asks_for(
    offered: Offered, away_seconds: float, evidence: EvidenceSource
) -> None:
    loop = Loop(offered, evidence, replicas=2)
    asked_for = await _watched(loop)
    await loop.run(600, keda=True)
    loop.monitoring.away_until = loop.clock + away_seconds
    await loop.run(1500, keda=True)
    assert all(live == observed for live, observed in asked_for)
    unknown = [one.state is State.UNKNOWN for one in loop.decisions]
    assert all(
        observed is None
        for (_, observed), is_unknown in zip(asked_for, unknown, strict=True)
        if is_unknown
    )
    assert any(unknown) is (away_seconds > 0)


async def test_what_it_asks_for_is_where_the_hpa_gets_to() -> None:
    loop = Loop(lambda t: 60.0 if t < 0 else 300.0)
    asked_for = await _watched(loop)
    await loop.run(1200)
    assert asked_for[-1] == (4, 4)
    assert loop.sizes[-1] == 4


@each
async def test_what_went_to_zero_hours_ago_is_not_taken_for_never_seen(
    evidence: EvidenceSource,
) -> None:
    """Also after its pods are forgotten."""
    loop = Loop(lambda t: 60.0 if t < 0 else 0.0, evidence)
    asked_for = await _watched(loop)
    await loop.run(3 * 3600, keda=True)
    assert loop.sizes[-1] == 0
    assert asked_for[-1] == (0, 0)
