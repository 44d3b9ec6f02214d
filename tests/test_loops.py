"""Claims about the whole loop: what replicas come of the scaler's answers, minute after minute.

With evidence of the cluster and, where exporters alone suffice, without it as well.
"""

from dataclasses import replace

import pytest

from keda_gpu_scaler import condition
from keda_gpu_scaler.autoscaling import Keda
from keda_gpu_scaler.decision import State
from keda_gpu_scaler.evidence import Basis
from keda_gpu_scaler.snapshot import Pod
from tests.loops import Loop
from tests.triggers import spec

each = pytest.mark.parametrize("evidence", list(Basis))
told = pytest.mark.parametrize("evidence", [Basis.KUBERNETES, Basis.KUBE_STATE_METRICS])
INFINITE = float("inf")


def _grown(loop: Loop) -> list[int]:
    """Return the replicas in the order in which they were wanted, each once."""
    return [size for n, size in enumerate(loop.sizes) if n == 0 or size != loop.sizes[n - 1]]


@each
async def test_130_percent_of_work_becomes_two_replicas_and_never_three(evidence: Basis) -> None:
    loop = Loop(lambda _: 130.0, evidence)
    await loop.run(1800)
    assert _grown(loop) == [2]


@pytest.mark.parametrize(("start_seconds", "within"), [(30.0, 700), (120.0, 1050), (300.0, 1800)])
async def test_a_saturated_climb_ends_at_what_is_needed(
    start_seconds: float, within: float
) -> None:
    """Each rung takes the start-up, the exporter's delay and half a window."""
    loop = Loop(lambda _: 800.0, start_seconds=start_seconds)
    await loop.run(within)
    assert _grown(loop) == [2, 3, 5, 8, 12]
    await loop.run(1200)
    assert loop.sizes[-1] == max(loop.sizes) == 12


@told
async def test_loading_at_100_percent_is_nobody_s_work(evidence: Basis) -> None:
    loop = Loop(lambda _: 85.0, evidence, start_seconds=300.0)
    await loop.run(2400)
    assert _grown(loop) == [2]


@told
async def test_woken_from_zero_while_the_model_loads_stays_at_one(evidence: Basis) -> None:
    loop = Loop(lambda _: 30.0, evidence, replicas=0, start_seconds=300.0)
    await loop.run(120)
    assert loop.decisions[-1].state is State.EMPTY
    loop.resize(1)
    loop.keda.last_active = loop.clock
    await loop.run(1800, keda=True)
    assert set(loop.sizes[8:]) == {1}
    assert loop.decisions[-1].value == 30


@each
async def test_a_start_longer_than_the_cooldown_is_not_killed(evidence: Basis) -> None:
    loop = Loop(lambda _: 30.0, evidence, replicas=0, keda=Keda(cooldown_seconds=20))
    await loop.run(120)
    loop.resize(1)
    loop.keda.last_active = loop.clock
    await loop.run(900, keda=True)
    assert set(loop.sizes[8:]) == {1}


@each
@pytest.mark.parametrize("loading", [0.0, 100.0])
async def test_a_rolling_update_changes_nothing(loading: float, evidence: Basis) -> None:
    loop = Loop(lambda _: 240.0, evidence, replicas=4, loading=loading)
    await loop.run(300)
    for old in list(loop.pods):
        loop.surge()
        await loop.run(75)
        loop.delete(old)
        await loop.run(30)
    await loop.run(900)
    assert set(loop.sizes) == {4}


@told
async def test_a_slow_drain_causes_no_scale_up(evidence: Basis) -> None:
    loop = Loop(lambda t: 360.0 if t < 300 else 240.0, evidence, replicas=6, grace_seconds=300.0)
    await loop.run(2400)
    assert _grown(loop) == [6, 5, 4]


@each
async def test_an_exporter_that_is_deleted_while_its_pod_works_zeroes_nothing(
    evidence: Basis,
) -> None:
    loop = Loop(lambda _: 60.0, evidence)
    await loop.run(300)
    loop.pods[0].unlisted = loop.clock
    await loop.run(900, keda=True)
    assert set(loop.sizes) == {1}
    loop.pods[0].unlisted, loop.offered = INFINITE, lambda _: 0.0
    await loop.run(1500, keda=True)
    assert loop.sizes[-1] == 0


@each
async def test_a_lost_node_holds_and_does_not_keep_an_idle_workload_for_ever(
    evidence: Basis,
) -> None:
    loop = Loop(lambda _: 120.0, evidence, replicas=2)
    await loop.run(300)
    lost = loop.pods[0]
    lost.unlisted = loop.clock
    await loop.run(300)
    loop.delete(lost)
    lost.gone = INFINITE  # nobody there can say that it ended
    await loop.run(600)
    assert set(loop.sizes) == {2}
    loop.offered = lambda _: 0.0
    await loop.run(5400 if evidence is Basis.EXPORTERS else 1500, keda=True)
    assert set(loop.sizes[-40:]) == {0}


@each
async def test_a_prometheus_that_restarted_empty_takes_nothing_away(evidence: Basis) -> None:
    loop = Loop(lambda _: 480.0, evidence, replicas=8)
    await loop.run(300)
    loop.history_since = loop.listed_since = loop.clock
    await loop.run(1800, keda=True)
    assert min(loop.sizes) == 7
    loop.offered = lambda _: 0.0
    await loop.run(1500, keda=True)
    assert loop.sizes[-1] == 0


@told
async def test_a_completed_pod_that_is_still_attributed_does_not_count(evidence: Basis) -> None:
    loop = Loop(lambda _: 120.0, evidence, replicas=2)
    await loop.run(300)
    loop.pods[0].completed = loop.clock
    await loop.run(900)
    assert loop.decisions[-1].expected == 2
    assert loop.decisions[-1].value == 120
    assert loop.decisions[-1].evidence is evidence


def test_a_pod_counts_half_a_window_after_it_became_ready() -> None:
    """What the loops above stand on, in one place."""
    trigger = spec(window="2m")
    assert condition.COVERED * condition.window_seconds(trigger, _nothing()) == 60
    averaged = replace(_nothing(), averaged=True)
    assert condition.window_seconds(spec(), averaged) == 60


def _nothing() -> Pod:
    return Pod("bert-7b6667bd9-bbbbb", (), None, 0.0, 0.0)
