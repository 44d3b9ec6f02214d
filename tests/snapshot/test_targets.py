"""Claims about unbroken runs of good scrapes."""

from keda_gpu_scaler.snapshot.observation import Observation, Target
from keda_gpu_scaler.snapshot.targets import (
    TargetHealth,
    absent_from_good_scrape,
    advance_targets,
    grace_seconds,
)
from tests.support.worlds import NODE, World, since, until


def _advanced(world: World, *ats: float) -> tuple[dict[float, float], TargetHealth]:
    states: dict[Target, TargetHealth] = {}
    known_at: float | None = None
    up_intervals: dict[float, float] = {}
    for at in ats:
        observation = world.observed(at)
        new_runs, states = advance_targets(states, known_at, observation)
        up_intervals, known_at = dict(new_runs.get(NODE, {})), at
    return up_intervals, states[NODE]


def test_a_target_good_from_the_start_has_one_run() -> None:
    up_intervals, state = _advanced(World(()), 300.0)
    assert set(up_intervals.values()) == {15.0}
    assert state == TargetHealth(15.0, 300.0, None, 15.0)


def test_a_run_goes_on_from_one_observation_to_the_next() -> None:
    up_intervals, state = _advanced(World(()), 300.0, 315.0)
    assert up_intervals == {315.0: 15.0}
    assert state.good_since == 15.0
    assert state.last_good == 315.0


def test_a_run_begins_anew_after_bad_scrapes_and_is_a_return() -> None:
    spans = (*until(200.0), *since(260.0))
    _, state = _advanced(World((), {NODE: spans}), 300.0)
    assert state.good_since == 270.0
    assert state.returned_at == 270.0


def test_a_target_that_was_never_good_before_does_not_return() -> None:
    _, state = _advanced(World((), {NODE: since(200.0)}), 300.0)
    assert state.good_since == 210.0
    assert state.returned_at is None


def test_a_hole_between_observations_ends_every_run() -> None:
    _, state = _advanced(World(()), 300.0, 9000.0)
    assert state.good_since == 9000.0 - 285.0
    assert state.returned_at == state.good_since


def test_the_scrape_interval_is_kept_while_too_few_scrapes_are_in_view() -> None:
    known = {NODE: TargetHealth(0.0, 300.0, None, 60.0)}
    alone = Observation((315.0,), (), {NODE: {315.0: 315.0}})
    _, states = advance_targets(known, 300.0, alone)
    assert states[NODE].interval_seconds == 60.0


def test_the_scrape_interval_is_that_of_the_scrapes_and_not_of_the_instants() -> None:
    scrapes = {15.0: 3.0, 30.0: 3.0, 45.0: 3.0, 60.0: 3.0, 75.0: 63.0}
    _, states = advance_targets({}, None, Observation(tuple(scrapes), (), {NODE: scrapes}))
    assert states[NODE].interval_seconds == 60.0


def test_within_a_run_absence_is_believed_at_once() -> None:
    assert absent_from_good_scrape({315.0: 0.0}, last_seen=300.0, settle_seconds=60)


def test_in_a_later_run_absence_is_believed_after_the_settling_time() -> None:
    assert not absent_from_good_scrape({330.0: 315.0}, last_seen=200.0, settle_seconds=60)
    assert absent_from_good_scrape({375.0: 315.0}, last_seen=200.0, settle_seconds=60)


def test_scrapes_before_the_pod_was_last_seen_say_nothing() -> None:
    assert not absent_from_good_scrape({285.0: 0.0, 300.0: 0.0}, last_seen=300.0, settle_seconds=60)


def test_patience_is_a_minute_or_two_scrapes() -> None:
    assert grace_seconds(15) == 60
    assert grace_seconds(60) == 120


def test_a_target_that_was_good_only_before_it_was_watched_has_no_health_yet() -> None:
    _, states = advance_targets(
        {}, 300.0, Observation((285.0, 300.0, 315.0), (), {NODE: {285.0: 285.0}})
    )
    assert states == {}
