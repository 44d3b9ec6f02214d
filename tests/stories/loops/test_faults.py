"""Claims about missing data: it takes no replica away, and keeps none for ever."""

import pytest

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.workbench.world.loop import NEVER
from testbed.loops.loop import Loop
from testbed.triggers import demanding, spec
from tests.stories.loops.variants import each

pytestmark = pytest.mark.slow


@each
@pytest.mark.parametrize("trigger", [spec(), demanding("sum(waiting)")], ids=["alone", "demand"])
async def test_load_that_returns_while_prometheus_is_away_finds_its_replica(
    trigger: TriggerSpec, evidence: EvidenceSource
) -> None:
    """Idle before, and the cooldown ends meanwhile: idle is nothing to remember."""
    loop = Loop(
        lambda t: 60.0 if t < 0 or t > 400 else 0.0,
        evidence,
        trigger=trigger,
        demand=lambda t: 3.0 * (400 < t < 2040),
    )
    await loop.run(240, keda=True)
    assert loop.decisions[-1].active is False
    loop.monitoring.away_until = loop.clock + 1200
    await loop.run(1800, keda=True)
    assert set(loop.sizes) == {1}
    loop.offered = lambda _: 0.0
    await loop.run(600, keda=True)
    assert loop.sizes[-1] == 0


@each
async def test_an_exporter_that_is_deleted_while_its_pod_works_zeroes_nothing(
    evidence: EvidenceSource,
) -> None:
    loop = Loop(lambda _: 60.0, evidence)
    await loop.run(300)
    loop.pods[0].unlisted = loop.clock
    await loop.run(900, keda=True)
    assert set(loop.sizes) == {1}
    loop.pods[0].unlisted, loop.offered = NEVER, lambda _: 0.0
    await loop.run(1500, keda=True)
    assert loop.sizes[-1] == 0


@each
async def test_a_lost_node_holds_and_does_not_keep_an_idle_workload_for_ever(
    evidence: EvidenceSource,
) -> None:
    loop = Loop(lambda _: 120.0, evidence, replicas=2)
    await loop.run(300)
    lost = loop.pods[0]
    lost.unlisted = loop.clock
    await loop.run(300)
    loop.delete(lost)
    lost.gone = NEVER  # nothing on that node can report its end
    await loop.run(600)
    assert set(loop.sizes) == {2}
    loop.offered = lambda _: 0.0
    await loop.run(5400 if evidence is EvidenceSource.EXPORTERS else 1500, keda=True)
    assert set(loop.sizes[-40:]) == {0}


@each
async def test_a_prometheus_that_restarted_empty_takes_nothing_away(
    evidence: EvidenceSource,
) -> None:
    loop = Loop(lambda _: 480.0, evidence, replicas=8)
    await loop.run(300)
    loop.monitoring.history_since = loop.monitoring.listed_since = loop.clock
    await loop.run(1800, keda=True)
    assert min(loop.sizes) == 7
    loop.offered = lambda _: 0.0
    await loop.run(1500, keda=True)
    assert loop.sizes[-1] == 0
