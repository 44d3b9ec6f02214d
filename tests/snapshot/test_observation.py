"""Claims about what sources return, and about unbroken runs of good scrapes."""

import math

import pytest

from keda_gpu_scaler.snapshot.observation import (
    Observation,
    Target,
    TargetHealth,
    absent_from_good_scrape,
    advance_targets,
    grace_seconds,
    is_ascending,
    scrape_times,
    uuid_of,
)
from keda_gpu_scaler.snapshot.snapshot import NEVER_SEEN
from tests.support.worlds import EVER, NODE, World, since, until


@pytest.mark.parametrize(
    ("times", "are_ascending"),
    [((1.0, 2.0, 3.0), True), ((1.0, 3.0, 2.0), False), ((1.0, 1.0), False), ((), True)],
)
def test_times_ascend_if_each_is_later_than_the_one_before(
    times: tuple[float, ...], *, are_ascending: bool
) -> None:
    assert is_ascending(times) is are_ascending


@pytest.mark.parametrize(
    ("scrape", "counts"),
    [(9000.0, True), (9000.1, False), (5400.0, True), (5399.9, False), (math.nan, False)],
    ids=["now", "later", "an hour ago", "longer ago", "no time"],
)
def test_a_scrape_counts_if_its_time_can_be_one(scrape: float, *, counts: bool) -> None:
    assert scrape_times([(9000.0, scrape)]) == ({9000.0: scrape} if counts else {})


def test_a_mig_instance_is_on_the_board_of_its_uuid() -> None:
    assert uuid_of("GPU-1/7") == uuid_of("GPU-1") == "GPU-1"


def _advanced(world: World, *ats: float) -> tuple[dict[float, float], TargetHealth]:
    states: dict[Target, TargetHealth] = {}
    known_at = NEVER_SEEN
    up_intervals: dict[float, float] = {}
    for at in ats:
        observation = world.observed(at)
        new_runs, states = advance_targets(states, known_at, observation)
        up_intervals, known_at = dict(new_runs.get(NODE, {})), at
    return up_intervals, states[NODE]


RUNS = {
    "good from the start": ((300.0,), EVER, TargetHealth(15.0, 300.0, None, 15.0)),
    "goes on": ((300.0, 315.0), EVER, TargetHealth(15.0, 315.0, None, 15.0)),
    "begins anew after bad scrapes, which is a return": (
        *((300.0,), (*until(200.0), *since(260.0)), TargetHealth(270.0, 300.0, 270.0, 15.0)),
    ),
    "begins, which is no return": (
        *((300.0,), since(200.0), TargetHealth(210.0, 300.0, None, 15.0)),
    ),
    "ends where nobody looked": (
        *((300.0, 9000.0), EVER, TargetHealth(8715.0, 9000.0, 8715.0, 15.0)),
    ),
}
"""When is looked at a target, when it is good, and its health in the end."""


@pytest.mark.parametrize("case", RUNS)
def test_a_run_of_good_scrapes(case: str) -> None:
    ats, spans, expected = RUNS[case]
    up_intervals, health = _advanced(World((), {NODE: spans}), *ats)
    assert health == expected
    assert max(up_intervals) == health.last_good
    assert set(up_intervals.values()) >= {health.good_since}


def test_the_scrape_interval_is_kept_while_too_few_scrapes_are_in_view() -> None:
    known = {NODE: TargetHealth(0.0, 300.0, None, 60.0)}
    alone = Observation((315.0,), (), {NODE: {315.0: 315.0}})
    _, states = advance_targets(known, 300.0, alone)
    assert states[NODE].interval_seconds == 60.0


def test_the_scrape_interval_is_that_of_the_scrapes_and_not_of_the_instants() -> None:
    scrapes = {15.0: 3.0, 30.0: 3.0, 45.0: 3.0, 60.0: 3.0, 75.0: 63.0}
    _, states = advance_targets({}, NEVER_SEEN, Observation(tuple(scrapes), (), {NODE: scrapes}))
    assert states[NODE].interval_seconds == 60.0


@pytest.mark.parametrize(
    ("up_intervals", "last_seen", "is_believed"),
    [
        ({315.0: 0.0}, 300.0, True),
        ({315.0: 300.0}, 300.0, True),
        ({330.0: 315.0}, 200.0, False),
        ({375.0: 315.0}, 200.0, True),
        ({285.0: 0.0, 300.0: 0.0}, 300.0, False),
    ],
    ids=[
        "within a run",
        "within one that began with it",
        "in a later run",
        "once that has settled",
        "before it was seen",
    ],
)
def test_when_absence_is_believed(
    up_intervals: dict[float, float], last_seen: float, *, is_believed: bool
) -> None:
    assert absent_from_good_scrape(up_intervals, last_seen, settle_seconds=60) is is_believed


def test_patience_is_a_minute_or_two_scrapes() -> None:
    assert grace_seconds(15) == 60
    assert grace_seconds(60) == 120


def test_a_target_that_was_good_only_before_it_was_watched_has_no_health_yet() -> None:
    _, states = advance_targets(
        {}, 300.0, Observation((285.0, 300.0, 315.0), (), {NODE: {285.0: 285.0}})
    )
    assert states == {}
