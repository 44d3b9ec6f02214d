"""Claims about replicas that come and go while the work stays, and about groups of pods."""

import pytest

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from testbed.loops.loop import Loop
from testbed.triggers import spec
from tests.stories.loops.variants import each, told

pytestmark = pytest.mark.slow


@each
@pytest.mark.parametrize("replicas", [4, 8])
@pytest.mark.parametrize("loading", [0.0, 100.0])
async def test_a_rolling_update_changes_nothing(
    loading: float, replicas: int, evidence: EvidenceSource
) -> None:
    loop = Loop(lambda _: 65.0 * replicas, evidence, replicas=replicas, loading=loading)
    await loop.run(300)
    await loop.roll_out(75, 30)
    await loop.run(900)
    assert set(loop.sizes) == {replicas}


@told
async def test_a_slow_drain_causes_no_scale_up(evidence: EvidenceSource) -> None:
    loop = Loop(lambda t: 360.0 if t < 300 else 240.0, evidence, replicas=6, grace_seconds=300.0)
    await loop.run(2400)
    assert loop.grown == [6, 5, 4]


@told
async def test_a_completed_pod_that_is_still_attributed_does_not_count(
    evidence: EvidenceSource,
) -> None:
    loop = Loop(lambda _: 120.0, evidence, replicas=2)
    await loop.run(300)
    loop.pods[0].completed = loop.clock
    await loop.run(900)
    assert loop.decisions[-1].expected == 2
    assert loop.decisions[-1].value == 120
    assert loop.decisions[-1].evidence is evidence


@each
async def test_the_replicas_of_a_leader_worker_set_are_its_groups(evidence: EvidenceSource) -> None:
    """The work of three pods that share it is counted once."""
    trigger = spec(workload="lws/bert")
    loop = Loop(lambda _: 120.0, evidence, replicas=2, group=3, trigger=trigger)
    await loop.run(1800)
    assert set(loop.sizes) == {2}
    assert loop.decisions[-1].value == 120
    loop.offered = lambda _: 240.0
    await loop.run(1800)
    assert loop.sizes[-1] == max(loop.sizes) == 4
