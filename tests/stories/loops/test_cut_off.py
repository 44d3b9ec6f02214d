"""Claims about two replicas of the scaler of which one cannot reach Prometheus."""

import random
from dataclasses import replace

import orjson
import pytest

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from tests.stories.loops.loop import Loop, each, seeded
from tests.stories.loops.monitoring import STEP

pytestmark = pytest.mark.slow

PEER = "http://10.0.0.7:8080"
seeds = seeded(range(6))


def _shared(loop: Loop, seed: int, *, since: float = 0.0, peers_until: float = 1e9) -> Loop:
    """Let half of the answers come from a second scaler, which is cut off from Prometheus.

    Args:
        loop: the loop.
        seed: of which answers come from which of them.
        since: after how many seconds it is cut off.
        peers_until: after how many seconds it is cut off from the other scaler as well.
    """

    async def ask(body: bytes) -> dict[str, bytes]:
        if loop.clock - loop.begin >= peers_until:
            return {}
        return {PEER: await loop.first.tell(orjson.loads(body))}

    cut = replace(loop.monitoring, away_until=float("inf") if not since else 0.0)
    chance = random.Random(seed)
    loop.second = loop.evaluator(cut, ask)

    async def cut_off(_decided: Decision, _timeout_seconds: float | None) -> None:
        if loop.clock - loop.begin >= since:
            cut.away_until = float("inf")

    loop.also = cut_off
    loop.shares_calls = lambda: chance.random() < 0.5
    return loop


@each
@seeds
@pytest.mark.parametrize("since", [0.0, 200.0])
async def test_an_idle_workload_gets_to_zero_and_stays_there(
    since: float, seed: int, evidence: EvidenceSource
) -> None:
    """Before, one of two answers said that it is active, or nothing at all, for 6,000 seconds."""
    loop = _shared(Loop(lambda t: 60.0 if t < 300 else 0.0, evidence), seed, since=since)
    await loop.run(6000, keda=True)
    assert 300 + 300 < loop.seconds_until(0) <= 300 + 120 + 300 + 90
    assert set(loop.sizes[loop.sizes.index(0) :]) == {0}
    assert PEER in " ".join(one.reason for one in loop.decisions)


@each
@seeds
async def test_load_gets_its_replicas_and_keeps_them(seed: int, evidence: EvidenceSource) -> None:
    """A busy workload grows as with one scaler alone, and never shrinks."""
    alone = Loop(lambda t: 60.0 if t < 300 else 200.0, evidence, seed=seed)
    await alone.run(3000, keda=True)
    loop = _shared(Loop(lambda t: 60.0 if t < 300 else 200.0, evidence, seed=seed), seed)
    await loop.run(3000, keda=True)
    assert loop.grown == alone.grown
    assert loop.overloaded_seconds <= alone.overloaded_seconds + 2 * STEP
    assert not loop.errors


@each
@seeds
async def test_what_was_idle_is_not_zeroed_when_the_other_is_cut_off_as_well(
    seed: int, evidence: EvidenceSource
) -> None:
    """Load returns unseen; that it was idle is nothing to remember, also of what was heard."""
    loop = _shared(Loop(lambda t: 60.0 if t < 0 or t > 400 else 0.0, evidence), seed)
    await loop.run(240, keda=True)
    loop.monitoring.away_until = loop.clock + 1200
    await loop.run(1800, keda=True)
    assert set(loop.sizes) == {1}


@each
@seeds
async def test_what_was_idle_is_not_zeroed_by_one_that_is_cut_off_from_all(
    seed: int, evidence: EvidenceSource
) -> None:
    """As without peers: the one that sees does not get its way alone, and nothing is made up."""
    loop = _shared(Loop(lambda t: 60.0 if t < 0 else 0.0, evidence), seed, peers_until=240)
    await loop.run(2400, keda=True)
    assert set(loop.sizes) == {1}
    assert {one.value for one in loop.decisions} >= {None, 0.0}


@each
@seeds
async def test_what_has_no_pods_is_not_woken_when_both_are_cut_off(
    seed: int, evidence: EvidenceSource
) -> None:
    loop = _shared(Loop(lambda t: 60.0 if t < 0 else 0.0, evidence), seed)
    await loop.run(1200, keda=True)
    assert loop.sizes[-1] == 0
    loop.monitoring.away_until = loop.clock + 1800
    await loop.run(3600, keda=True)
    assert set(loop.sizes[1200 // STEP :]) == {0}


@each
@seeds
async def test_a_workload_that_is_woken_on_a_late_node_is_not_zeroed(
    seed: int, evidence: EvidenceSource
) -> None:
    """The other one says for a while that it has no pods; the HPA's calls say that it has."""
    loop = _shared(
        Loop(
            lambda t: 60.0 if t > 900 else 0.0,
            evidence,
            replicas=0,
            node_seconds=200,
            exporter_late_seconds=400,
        ),
        seed,
    )
    await loop.run(900, keda=True)
    loop.wake()
    await loop.run(3000, keda=True)
    assert set(loop.sizes[900 // STEP :]) == {1}
