"""Claims about pods that start: what they show is not work, and does not make KEDA remove them."""

import pytest

from keda_gpu_scaler.autoscaling.rules import Keda
from keda_gpu_scaler.backtest.loop import STEP_SECONDS
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from tests.stories.loops.loop import Loop, each, told

loading = pytest.mark.parametrize("loading", [0.0, 100.0])


@told
async def test_loading_at_100_percent_is_nobody_s_work(evidence: EvidenceSource) -> None:
    loop = Loop(lambda _: 85.0, evidence, start_seconds=300.0)
    await loop.run(2400)
    assert loop.grown == [2]


@told
async def test_woken_from_zero_while_the_model_loads_stays_at_one(evidence: EvidenceSource) -> None:
    loop = Loop(lambda _: 30.0, evidence, replicas=0, start_seconds=300.0)
    await loop.run(120)
    assert loop.decisions[-1].state is State.EMPTY
    loop.wake()
    await loop.run(1800, keda=True)
    assert set(loop.sizes[8:]) == {1}
    assert loop.decisions[-1].value == 30


@each
async def test_a_start_longer_than_the_cooldown_is_not_killed(evidence: EvidenceSource) -> None:
    loop = Loop(lambda _: 30.0, evidence, replicas=0, keda=Keda(cooldown_seconds=20))
    await loop.run(120)
    loop.wake()
    await loop.run(900, keda=True)
    assert set(loop.sizes[8:]) == {1}


@loading
async def test_woken_onto_a_node_that_is_still_to_come(loading: float) -> None:
    """The cooldown is shorter than the node takes, and no exporter shows the pod meanwhile."""
    keda = Keda(cooldown_seconds=60)
    loop = Loop(lambda _: 30.0, replicas=0, node_seconds=300.0, loading=loading, keda=keda)
    await loop.run(120)
    loop.wake()
    await loop.run(1200, keda=True)
    assert set(loop.sizes[8:]) == {1}
    assert not loop.errors
    assert loop.decisions[-1].state is State.MEASURED


async def test_a_gpu_node_pool_at_zero_without_evidence_of_readiness_is_woken_on_a_signal() -> None:
    """There is no exporter before, which is no trouble, and it may be as long in coming."""
    loop = Loop(lambda _: 30.0, evidence=EvidenceSource.EXPORTERS, replicas=0, node_seconds=240.0)
    await loop.run(600)
    assert {one.active for one in loop.decisions} == {False}
    loop.wake()
    await loop.run(1800, keda=True)
    assert set(loop.sizes[600 // STEP_SECONDS :]) == {1}
    assert not loop.errors
    assert loop.decisions[-1].state is State.MEASURED


@loading
async def test_created_together_with_its_scaled_object_is_not_killed_while_it_loads(
    loading: float,
) -> None:
    """KEDA knows of no activity then, and kills at the first poll that is inactive."""
    loop = Loop(
        lambda t: 0.0 if t < 900 else 30.0, replicas=0, loading=loading, start_seconds=300.0
    )
    loop.resize(1)
    await loop.run(300 + 120, keda=True)
    assert set(loop.sizes) == {1}
    await loop.run(480, keda=True)
    assert loop.sizes[-1] == 0


async def test_created_together_with_its_scaled_object_by_exporters_alone() -> None:
    """What loads at 0 % is young for as long as `warmup` says, and the cooldown begins then."""
    loop = Loop(
        lambda _: 30.0,
        evidence=EvidenceSource.EXPORTERS,
        replicas=0,
        loading=0.0,
        start_seconds=300.0,
    )
    loop.resize(1)
    await loop.run(1200, keda=True)
    assert set(loop.sizes) == {1}
