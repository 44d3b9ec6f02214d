"""What is remembered of triggers between two evaluations: by whom, how long, and how much."""

from dataclasses import replace

import pytest

from keda_gpu_scaler.decision.decision import Context, Decision, decide
from keda_gpu_scaler.evaluator import tracked_trigger
from keda_gpu_scaler.evaluator.snapshot_cache import SnapshotCache
from keda_gpu_scaler.evaluator.tracked_trigger import Answer, GpuDecision, TrackedTriggers
from keda_gpu_scaler.spec.spec import FORGET_SECONDS, ScaledObject
from keda_gpu_scaler.spec.workload import Kind, ScaleTarget, Workload
from tests.support import triggers
from tests.support.scripted import Clock, ScriptedSource
from tests.support.snapshots import NOW, bert, snapshot
from tests.support.triggers import spec
from tests.support.worlds import World

BERT = ScaledObject("ml", "bert")
SPEC = triggers.spec()
UNAIMED = replace(SPEC, pods=ScaleTarget("ml"), workload="the scale target")


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


@pytest.fixture
def tracked(clock: Clock) -> TrackedTriggers:
    source = ScriptedSource(World(()), clock)
    return TrackedTriggers(SnapshotCache({"default": source.ports()}), clock)


def test_a_trigger_without_pods_is_tracked_with_those_of_its_target(
    tracked: TrackedTriggers,
) -> None:
    pods, others = (Workload(Kind.DEPLOYMENT, "ml", name) for name in ("bert", "gpt"))
    one = tracked.track(BERT, UNAIMED, pods)
    assert (one.spec.pods, one.spec.workload) == (pods, "deployment/bert")
    assert tracked.track(BERT, UNAIMED, replace(pods)) is one
    given = replace(UNAIMED, given=(("threshold", "70.0"),))
    tracked.track(BERT, given, pods)
    assert (one.spec.pods, one.spec.given) == (pods, given.given)
    assert tracked.track(BERT, UNAIMED) is one
    assert one.spec.pods == pods
    other = tracked.track(BERT, UNAIMED, others)
    assert other is not one
    assert tracked.all() == [other]


def test_it_is_forgotten_after_ten_minutes(tracked: TrackedTriggers, clock: Clock) -> None:
    one = tracked.track(BERT, SPEC)
    clock.seconds = FORGET_SECONDS - 1
    assert tracked.track(BERT, SPEC) is one
    tracked.keep(one)
    clock.seconds = 2 * FORGET_SECONDS - 2
    assert tracked.all() == [one]
    clock.seconds += 1
    assert tracked.track(BERT, SPEC) is not one
    clock.seconds = 3 * FORGET_SECONDS
    assert tracked.all() == []


@pytest.mark.slow
def test_of_too_many_the_oldest_go(tracked: TrackedTriggers, clock: Clock) -> None:
    first = tracked.track(BERT, SPEC)
    room = tracked_trigger.TRACKED_BYTES // first.kept_bytes
    clock.seconds = 1
    for number in range(room - 1):
        tracked.track(ScaledObject("ml", f"other-{number}"), SPEC)
    clock.seconds = 2
    tracked.keep(first)
    assert len(tracked.all()) == room  # to look at them is not to ask
    tracked.track(ScaledObject("ml", "other-last"), SPEC)
    names = {kept.scaled_object.name for kept in tracked.all()}
    assert len(names) == room
    assert {"bert", "other-last"} <= names
    assert "other-0" not in names


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
