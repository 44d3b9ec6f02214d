"""Claims about `aggregation: max` and `p95`, where some replicas get more work than others."""

from collections.abc import Callable

import pytest

from keda_gpu_scaler.autoscaling.rules import Hpa
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from testbed.loops.loop import Loop
from testbed.triggers import spec
from tests.stories.loops.variants import told

pytestmark = pytest.mark.slow


def _first_gets(share: float) -> Callable[[int], float]:
    """Return weights by which the first replica gets so many times what each other one gets."""
    return lambda number: share if number == 0 else 1.0


@told
@pytest.mark.parametrize(("aggregation", "replicas"), [("sum", 4), ("max", 6), ("p95", 6)])
async def test_a_replica_that_gets_twice_as_much_is_relieved_by_max_and_not_by_the_sum(
    aggregation: str, replicas: int, evidence: EvidenceSource
) -> None:
    """240 % of work over four: one shows 96 %, and three 48 %, which is 60 % on average."""
    loop = Loop(
        lambda _: 240.0,
        evidence,
        replicas=4,
        weight=_first_gets(2.0),
        trigger=spec(aggregation=aggregation),
    )
    await loop.run(7200)
    assert loop.grown[-1] == max(loop.sizes) == replicas
    busiest = max(pod.value(loop.clock - 60) or 0.0 for pod in loop.pods)
    assert (busiest <= 77) == (aggregation != "sum")


@told
@pytest.mark.parametrize("aggregation", ["max", "p95"])
async def test_what_is_asked_for_and_starts_is_not_given_back_and_not_asked_for_again(
    aggregation: str, evidence: EvidenceSource
) -> None:
    loop = Loop(
        lambda t: 120.0 if t < 600 else 240.0,
        evidence,
        replicas=4,
        start_seconds=600.0,
        weight=_first_gets(2.0),
        hpa=Hpa(maximum=20, stabilization_seconds=0, minimum=4),
        trigger=spec(aggregation=aggregation),
    )
    await loop.run(7200)
    assert loop.grown == sorted(loop.grown)
    assert max(loop.sizes) <= 8


async def test_a_load_that_does_not_spread_asks_for_every_replica_by_max() -> None:
    """Which is what docs/specification.md says of it."""
    stuck = _first_gets(1e9)
    loop = Loop(
        lambda _: 100.0,
        replicas=2,
        weight=stuck,
        hpa=Hpa(maximum=6),
        trigger=spec(aggregation="max"),
    )
    await loop.run(3600)
    assert loop.sizes[-1] == 6
    by_sum = Loop(lambda _: 100.0, replicas=2, weight=stuck, hpa=Hpa(maximum=6))
    await by_sum.run(3600)
    assert max(by_sum.sizes) == 2


@told
async def test_a_rolling_update_adds_no_replica_by_max(evidence: EvidenceSource) -> None:
    """The extra pod of each step is measured before an old one goes; the oldest does all work."""
    loop = Loop(
        lambda _: 65.0,
        evidence,
        replicas=2,
        start_seconds=30.0,
        hpa=Hpa(maximum=20, stabilization_seconds=0, minimum=2),
        weight=lambda number: 1000.0**-number,
        trigger=spec(aggregation="max"),
    )
    await loop.run(600)
    await loop.roll_out(300, 60)
    await loop.run(600)
    assert set(loop.sizes) == {2}


@told
async def test_idle_replicas_go_to_zero_by_max_as_by_the_sum(evidence: EvidenceSource) -> None:
    loop = Loop(
        lambda t: 140.0 if t < 600 else 0.0, evidence, replicas=2, trigger=spec(aggregation="max")
    )
    await loop.run(3600, keda=True)
    assert loop.sizes[-1] == 0
