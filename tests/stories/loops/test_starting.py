"""Claims about pods that start: what they show is not work, and does not make KEDA remove them."""

from typing import Any

import pytest

from keda_gpu_scaler.autoscaling.rules import Keda
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS
from testbed.loops.loop import Loop
from tests.stories.loops.variants import each, told


@told
async def test_loading_at_100_percent_is_nobody_s_work(evidence: EvidenceSource) -> None:
    loop = Loop(lambda _: 85.0, evidence, start_seconds=300.0)
    await loop.run(2400)
    assert loop.grown == [2]


@told
@pytest.mark.parametrize(
    "terms",
    [
        pytest.param({"start_seconds": 300.0}, id="its model loads"),
        pytest.param({"node_seconds": 300.0}, id="its node is still to come"),
        pytest.param({"node_seconds": 300.0, "loading": 0.0}, id="and it loads at 0 %"),
    ],
)
async def test_woken_from_zero_it_stays_at_one_for_longer_than_the_cooldown(
    terms: dict[str, Any], evidence: EvidenceSource
) -> None:
    """No exporter shows a pod whose node is still to come."""
    keda = Keda(cooldown_seconds=60)
    loop = Loop(lambda _: 30.0, evidence, replicas=0, keda=keda, **terms)
    await loop.run(120)
    assert loop.decisions[-1].state is State.EMPTY
    loop.wake()
    await loop.run(1800, keda=True)
    assert set(loop.sizes[8:]) == {1}
    assert not loop.errors
    assert (loop.decisions[-1].state, loop.decisions[-1].value) == (State.MEASURED, 30)


@each
async def test_a_start_longer_than_the_cooldown_is_not_killed(evidence: EvidenceSource) -> None:
    loop = Loop(lambda _: 30.0, evidence, replicas=0, keda=Keda(cooldown_seconds=20))
    await loop.run(120)
    loop.wake()
    await loop.run(900, keda=True)
    assert set(loop.sizes[8:]) == {1}


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


@pytest.mark.parametrize("loading", [0.0, 100.0])
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
