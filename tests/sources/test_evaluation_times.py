"""Claims about instants: exact, aligned, and the same for every server."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources import evaluation_times
from keda_gpu_scaler.sources.evaluation_times import (
    CACHED_SECONDS,
    SYNCHRONIZED_SECONDS,
    TURNED_BACK_SECONDS,
    ServerClock,
)
from testbed.clocks import Clock

milliseconds = st.integers(1, 10**6)
NOW_MS = 1_800_000_000_000


@given(st.integers(0, 10**9), milliseconds)
def test_a_floored_time_is_the_last_multiple_of_the_step(after: int, step_ms: int) -> None:
    floored = evaluation_times.floored((NOW_MS + after) / 1000, step_ms / 1000)
    assert round(floored * 1000) == (NOW_MS + after) // step_ms * step_ms


@given(milliseconds, milliseconds)
def test_a_span_of_whole_steps_holds_the_span_and_no_step_more(span_ms: int, step_ms: int) -> None:
    whole_ms = round(evaluation_times.whole_steps(span_ms / 1000, step_ms / 1000) * 1000)
    assert whole_ms % step_ms == 0
    assert span_ms <= whole_ms < span_ms + step_ms


def test_the_instant_at_which_a_span_begins_is_not_in_it() -> None:
    assert evaluation_times.within(60, 30, 15) == (45, 60)
    assert evaluation_times.within(61, 30, 15) == (45, 60)


instants = st.integers(0, 6).map(float)


@given(st.lists(st.tuples(instants, st.floats(0, 9)), max_size=6), instants, instants)
def test_points_are_kept_as_they_are_or_cut_and_put_in_order(
    points: list[tuple[float, float]], first: float, last: float
) -> None:
    times = [time for time, _ in points]
    are_usual = times == sorted(times) and all(first <= time <= last for time in times)
    inside = points if are_usual else sorted(each for each in points if first <= each[0] <= last)
    expected = [Row.of({}, inside)] if inside else []
    assert evaluation_times.between(first, last, [Row.of({}, points)]) == expected


@pytest.mark.parametrize("seconds", [1e308, 0.0, 4e9, math.nan])
def test_a_clock_that_is_years_away_is_not_believed(seconds: float) -> None:
    clock = ServerClock(Clock())
    with pytest.raises(errors.SourceMalformedError, match="clocks that are less than a year"):
        clock.set(seconds)
    assert not clock.is_synchronized
    assert abs(clock.now() - time.time()) < 60


@pytest.mark.parametrize(
    ("leap_seconds", "is_seen"), [(600.0, True), (2.5, True), (1.5, False), (-600.0, False)]
)
def test_after_a_machine_has_slept_it_is_later_and_the_clock_is_asked_for(
    leap_seconds: float,
    is_seen: bool,
) -> None:
    monotonic, wall = Clock(), Clock(1_800_000_000)
    clock = ServerClock(monotonic, wall)
    clock.set(wall() + 7)
    wall.now += leap_seconds
    assert clock.is_synchronized is not is_seen
    assert clock.now() == 1_800_000_007 + (leap_seconds if is_seen else 0)
    clock.set(1_800_000_010)
    assert clock.is_synchronized
    assert clock.now() == 1_800_000_010


def test_a_cached_answer_does_not_turn_the_clock_back() -> None:
    monotonic, wall = Clock(), Clock(1_800_000_000)
    clock = ServerClock(monotonic, wall)
    clock.set(wall())
    for passed in (SYNCHRONIZED_SECONDS, CACHED_SECONDS - 1):
        monotonic.now, wall.now = 1000 + passed, 1_800_000_000 + passed
        with pytest.raises(errors.SourceMalformedError, match="went back by"):
            clock.set(1_800_000_000)
        assert not clock.is_synchronized
        assert clock.now() == wall()
    clock.set(wall() - TURNED_BACK_SECONDS)
    assert clock.now() == wall() - TURNED_BACK_SECONDS


def test_a_clock_that_stays_turned_back_is_believed() -> None:
    monotonic, wall = Clock(), Clock(1_800_000_000)
    clock = ServerClock(monotonic, wall)
    clock.set(wall())
    monotonic.now += CACHED_SECONDS
    wall.now += CACHED_SECONDS
    clock.set(wall() - 600)
    assert clock.now() == wall() - 600
