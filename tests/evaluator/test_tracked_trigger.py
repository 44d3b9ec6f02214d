"""What is remembered of triggers between two evaluations: by whom, how long, and how much."""

from dataclasses import replace

import pytest

from keda_gpu_scaler.decision.decision import Context, Decision, decide
from keda_gpu_scaler.evaluator.shared_snapshot import Snapshots
from keda_gpu_scaler.evaluator.tracked_trigger import Answer, GpuDecision, TrackedTriggers
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.spec.workload import Kind, ScaleTarget, Workload
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import FORGET_SECONDS, SLOW_SECONDS
from testbed import triggers
from testbed.triggers import spec
from tests.support.scripted import AWAY, Clock, ScriptedCluster, ScriptedSource
from tests.support.snapshots import NOW, bert, snapshot
from tests.support.worlds import World

BERT = ScaledObject("ml", "bert")
SPEC = triggers.spec()
UNAIMED = replace(SPEC, pods=ScaleTarget("ml"), workload="the scale target")


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


@pytest.fixture
def cluster() -> ScriptedCluster:
    return ScriptedCluster()


@pytest.fixture
def tracked(clock: Clock, cluster: ScriptedCluster) -> TrackedTriggers:
    source = ScriptedSource(World(()), clock)
    snapshots = Snapshots({"default": source.ports()}, facts.ignore, clock, SLOW_SECONDS)
    return TrackedTriggers(snapshots, cluster, clock)


async def test_a_trigger_without_pods_is_tracked_with_those_of_its_target(
    tracked: TrackedTriggers, cluster: ScriptedCluster
) -> None:
    pods, others = (Workload(Kind.DEPLOYMENT, "ml", name) for name in ("bert", "gpt"))
    cluster.targets[BERT] = pods
    first, trouble = await tracked.find(BERT, UNAIMED, 1.0)
    assert (first.spec.pods, first.spec.workload, trouble) == (pods, "deployment/bert", None)
    given = replace(UNAIMED, given=(("threshold", "70.0"),))
    assert await tracked.find(BERT, given, 1.0) == (first, None)
    assert (first.spec.pods, first.spec.given) == (pods, given.given)
    cluster.targets.clear()
    assert await tracked.find(BERT, UNAIMED, 1.0) == (first, str(AWAY))
    assert first.spec.pods == pods
    cluster.targets[BERT] = others
    other, _ = await tracked.find(BERT, UNAIMED, 1.0)
    assert other is not first
    assert tracked.current() == [other]


async def test_it_is_forgotten_after_ten_minutes(tracked: TrackedTriggers, clock: Clock) -> None:
    first, _ = await tracked.find(BERT, SPEC, 1.0)
    clock.seconds = FORGET_SECONDS - 1
    assert await tracked.find(BERT, SPEC, 1.0) == (first, None)
    tracked.keep(first)
    clock.seconds = 2 * FORGET_SECONDS - 2
    assert tracked.current() == [first]
    clock.seconds += 1
    assert tracked.current() == []
    assert await tracked.find(BERT, SPEC, 1.0) != (first, None)


BUSY = decide(spec(), snapshot(bert("b", 90)), Context(NOW))
IDLE = replace(BUSY, active=False, activated=False)
DOUBTED = replace(BUSY, activated=False)
"""Active, because nothing shows that it is idle."""


@pytest.mark.parametrize(
    ("decided", "gpu", "alert", "said"),
    [
        (BUSY, GpuDecision(BUSY), None, "gpus"),
        (BUSY, GpuDecision(IDLE, neighbour=BUSY), None, "activationWorkload"),
        (BUSY, GpuDecision(IDLE, neighbour=IDLE), "Waiting", "alert"),
        (BUSY, GpuDecision(IDLE), None, "demand"),
        (IDLE, GpuDecision(IDLE), None, None),
        (DOUBTED, GpuDecision(DOUBTED), None, None),
    ],
    ids=["gpus", "neighbour", "alert", "demand", "idle", "in doubt"],
)
def test_the_signal_that_said_active_is_named(
    decided: Decision, gpu: GpuDecision, alert: str | None, said: str | None
) -> None:
    assert Answer(decided, NOW, gpu, alert, None, None).active_by == said
