"""Claims about two replicas of the scaler of which one cannot reach Prometheus: it holds."""

import random
from dataclasses import replace

import pytest

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS
from testbed.loops.loop import Loop
from tests.stories.loops.variants import each, seeded

pytestmark = pytest.mark.slow

FOREVER = float("inf")
seeds = seeded(range(6))


def _shared(loop: Loop, seed: int, *, since: float = 0.0) -> Loop:
    """Let half of the answers come from a second scaler, which is cut off from Prometheus.

    Args:
        loop: the loop.
        seed: of which answers come from which of them.
        since: after how many seconds it is cut off.
    """
    cut = replace(loop.monitoring, away_until=0.0 if since else FOREVER)
    chance = random.Random(seed)
    loop.second = loop.evaluator(cut)

    async def cut_off(_decided: Decision, _timeout_seconds: float | None) -> None:
        if loop.clock - loop.begin >= since:
            cut.away_until = FOREVER

    loop.also = cut_off
    loop.shares_calls = lambda: chance.random() < 0.5
    return loop


@each
@seeds
@pytest.mark.parametrize("since", [0.0, 200.0])
async def test_load_gets_its_replicas_and_keeps_them(
    since: float, seed: int, evidence: EvidenceSource
) -> None:
    """A busy workload grows as with one scaler alone, a few answers later."""
    alone = Loop(lambda t: 60.0 if t < 300 else 200.0, evidence, seed=seed)
    await alone.run(3000, keda=True)
    loop = _shared(
        Loop(lambda t: 60.0 if t < 300 else 200.0, evidence, seed=seed), seed, since=since
    )
    await loop.run(3000, keda=True)
    assert loop.grown == alone.grown
    assert loop.overloaded_seconds <= alone.overloaded_seconds + 4 * STEP_SECONDS
    assert not loop.errors


@each
async def test_while_only_the_one_that_is_cut_off_is_asked_every_replica_stays(
    evidence: EvidenceSource,
) -> None:
    """It holds until its source is back, however much load there is."""
    loop = Loop(lambda t: 60.0 if t < 300 else 200.0, evidence)
    loop.monitoring.away_until = loop.begin + 1500
    loop.shares_calls = lambda: True
    await loop.run(1500, keda=True)
    assert set(loop.sizes) == {1}
    assert {(one.state, one.value) for one in loop.decisions} == {(State.UNKNOWN, None)}
    assert loop.overloaded_seconds == 1200
    await loop.run(600, keda=True)
    assert loop.sizes[-1] == 3


@each
@seeds
async def test_what_was_idle_is_not_zeroed_when_the_other_is_cut_off_as_well(
    seed: int, evidence: EvidenceSource
) -> None:
    """Load returns unseen; that it was idle is nothing to remember."""
    loop = _shared(Loop(lambda t: 60.0 if t < 0 or t > 400 else 0.0, evidence), seed)
    await loop.run(240, keda=True)
    loop.monitoring.away_until = loop.clock + 1200
    await loop.run(1800, keda=True)
    assert set(loop.sizes) == {1}


@each
@seeds
async def test_what_has_no_pods_is_not_woken_when_both_are_cut_off(
    seed: int, evidence: EvidenceSource
) -> None:
    loop = _shared(Loop(lambda t: 60.0 if t < 0 else 0.0, evidence), seed, since=1000)
    await loop.run(1200, keda=True)
    assert loop.sizes[-1] == 0
    loop.monitoring.away_until = loop.clock + 1800
    await loop.run(3600, keda=True)
    assert set(loop.sizes[1200 // STEP_SECONDS :]) == {0}


@each
@seeds
async def test_a_workload_that_is_woken_on_a_late_node_is_not_zeroed(
    seed: int, evidence: EvidenceSource
) -> None:
    """The HPA's calls say that it has pods, of which the one that is cut off sees none."""
    loop = _shared(
        Loop(
            lambda t: 60.0 if t > 900 else 0.0,
            evidence,
            replicas=0,
            node_seconds=200,
            exporter_late_seconds=400,
        ),
        seed,
        since=300,
    )
    await loop.run(900, keda=True)
    loop.wake()
    await loop.run(3000, keda=True)
    assert set(loop.sizes[900 // STEP_SECONDS :]) == {1}
