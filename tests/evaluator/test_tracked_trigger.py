"""What is remembered of triggers between two evaluations: by whom, how long, and how much."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from keda_gpu_scaler.evaluator import tracked_trigger
from keda_gpu_scaler.evaluator.snapshot_cache import SnapshotCache
from keda_gpu_scaler.evaluator.tracked_trigger import TrackedTriggers
from keda_gpu_scaler.spec.kinds import Kind
from keda_gpu_scaler.spec.retention import FORGET_SECONDS
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.spec.workload import ScaleTarget, Workload
from tests.support import triggers
from tests.support.scripted import Clock, ScriptedSource
from tests.support.worlds import World

BERT = ScaledObject("ml", "bert")
SPEC = triggers.spec()
UNAIMED = replace(SPEC, pods=ScaleTarget("ml"), workload="the scale target")


@pytest.fixture
def tracked() -> TrackedTriggers:
    source = ScriptedSource(World(()), Clock())
    return TrackedTriggers(SnapshotCache({"default": source.ports()}))


def test_the_same_trigger_of_the_same_object_is_tracked_once(tracked: TrackedTriggers) -> None:
    one = tracked.track(BERT, SPEC, 0.0)
    assert tracked.track(BERT, replace(SPEC), 1.0) is one
    assert tracked.track(ScaledObject("ml", "gpt"), SPEC, 1.0) is not one
    assert tracked.track(BERT, replace(SPEC, threshold=80.0), 1.0) is not one
    assert [each.scaled_object.name for each in tracked.all(1.0)] == ["bert", "bert", "gpt"]


def test_it_shows_the_words_in_which_it_was_asked_for_last(tracked: TrackedTriggers) -> None:
    one = tracked.track(BERT, SPEC, 0.0)
    tracked.track(BERT, replace(SPEC, given=(("threshold", "70.0"),)), 1.0)
    assert one.spec.given == (("threshold", "70.0"),)


def test_a_trigger_that_names_no_pods_is_tracked_with_those_of_its_target(
    tracked: TrackedTriggers,
) -> None:
    pods, others = (Workload(Kind.DEPLOYMENT, "ml", name) for name in ("bert", "gpt"))
    one = tracked.track(BERT, UNAIMED, 0.0, pods)
    assert (one.spec.pods, one.spec.workload) == (pods, "deployment/bert")
    assert tracked.track(BERT, UNAIMED, 1.0, replace(pods)) is one
    assert tracked.track(BERT, UNAIMED, 1.0, others) is not one
    assert tracked.track(BERT, UNAIMED, 1.0) is not one
    given = replace(UNAIMED, given=(("threshold", "70.0"),))
    tracked.track(BERT, given, 1.0, pods)
    assert (one.spec.pods, one.spec.given) == (pods, given.given)


def test_those_of_one_object_are_found_until_they_are_forgotten(tracked: TrackedTriggers) -> None:
    gpt = ScaledObject("ml", "gpt")
    ours = [tracked.track(BERT, SPEC, 0.0), tracked.track(BERT, replace(SPEC, threshold=80.0), 9.0)]
    theirs = tracked.track(gpt, SPEC, 9.0)
    assert (tracked.of(BERT, 9.0), tracked.of(gpt, 9.0)) == (ours, [theirs])
    assert tracked.of(ScaledObject("ml", "other"), 9.0) == []
    assert tracked.of(BERT, FORGET_SECONDS) == ours[1:]
    again = tracked.track(BERT, SPEC, FORGET_SECONDS)
    assert tracked.of(BERT, FORGET_SECONDS) == [ours[1], again]
    assert tracked.all(2 * FORGET_SECONDS) == []
    assert tracked.of(gpt, 2 * FORGET_SECONDS) == []


def test_it_is_forgotten_ten_minutes_after_it_was_asked_about(tracked: TrackedTriggers) -> None:
    one = tracked.track(BERT, SPEC, 0.0)
    assert tracked.track(BERT, SPEC, FORGET_SECONDS - 1) is one
    last = 2 * FORGET_SECONDS - 2
    assert tracked.all(last) == [one]
    assert tracked.track(BERT, SPEC, last + 1) is not one
    assert tracked.all(3 * FORGET_SECONDS) == []


@pytest.fixture
def many(tracked: TrackedTriggers) -> Callable[[int, float], None]:
    def ask(count: int, now: float) -> None:
        for number in range(count):
            tracked.track(ScaledObject("ml", f"other-{number}"), SPEC, now)

    return ask


@pytest.mark.slow
def test_of_too_many_those_go_that_were_asked_about_longest_ago(
    tracked: TrackedTriggers, many: Callable[[int, float], None]
) -> None:
    one = tracked.track(BERT, SPEC, 0.0)
    room = tracked_trigger.TRACKED_BYTES // one.kept_bytes
    many(room - 1, 1.0)
    assert len(tracked.all(1.0)) == room
    assert tracked.track(BERT, SPEC, 2.0) is one
    tracked.track(ScaledObject("ml", "one-more"), SPEC, 2.0)
    left = tracked.all(2.0)
    assert len(left) == pytest.approx(room * 7 / 8, abs=2)
    assert {"bert", "one-more"} <= {each.scaled_object.name for each in left}


@pytest.mark.slow
def test_what_is_forgotten_makes_room_for_others(
    tracked: TrackedTriggers, many: Callable[[int, float], None]
) -> None:
    room = tracked_trigger.TRACKED_BYTES // tracked.track(BERT, SPEC, 0.0).kept_bytes
    many(room // 2, 0.0)
    many(room, FORGET_SECONDS)
    assert len(tracked.all(FORGET_SECONDS)) == room
