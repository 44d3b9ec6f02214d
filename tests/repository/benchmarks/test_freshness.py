"""The benchmark of freshness: when a load steps, what may be answered, and what the floor is."""

import time

import pytest

from benchmarks.freshness import AFTER, BEFORE, DIRECT, PROMETHEUS, Stepping
from benchmarks.processes import ServerError

STEPS_AT = 1_000_007.0


@pytest.fixture
def stepping() -> Stepping:
    return Stepping(3, steps_at=STEPS_AT)


def shown(stepping: Stepping, now: float) -> float:
    return float(stepping.page(PROMETHEUS, now).rpartition(" ")[2])


def test_the_load_steps_at_its_moment_and_the_first_scrape_of_it_is_written_down(
    stepping: Stepping,
) -> None:
    assert shown(stepping, STEPS_AT - 0.1) == BEFORE
    assert stepping.served_at == {}
    assert [shown(stepping, STEPS_AT + late) for late in (2, 17)] == [AFTER, AFTER]
    assert stepping.served_at == {PROMETHEUS: STEPS_AT + 2}


def test_the_floor_of_prometheus_is_the_first_step_after_the_scrape(stepping: Stepping) -> None:
    stepping.page(PROMETHEUS, 1_000_010.0)
    assert stepping.floor(PROMETHEUS) == 1_000_020 - STEPS_AT


def test_the_floor_of_exporters_is_the_first_round_after_the_scrape() -> None:
    now = time.time()
    stepping = Stepping(3, steps_at=now)
    stepping.page(DIRECT, now)
    assert 0 <= stepping.floor(DIRECT) <= 5
    round_at = time.monotonic() + (now - time.time()) + stepping.floor(DIRECT)
    assert round_at % 5 == pytest.approx(0, abs=0.01) or round_at % 5 == pytest.approx(5, abs=0.01)


def test_the_first_changed_answer_counts(stepping: Stepping) -> None:
    stepping.page(DIRECT, STEPS_AT + 1)
    stepping.answered(DIRECT, [BEFORE], STEPS_AT + 1.5)
    assert stepping.changed_at == {}
    stepping.answered(DIRECT, [AFTER - 10], STEPS_AT + 2)
    stepping.answered(DIRECT, [AFTER], STEPS_AT + 3)
    assert stepping.took(DIRECT) == 2


@pytest.mark.parametrize("values", [[], [BEFORE - 1], [AFTER + 1]])
def test_an_answer_that_no_window_has_fails(stepping: Stepping, values: list[float]) -> None:
    stepping.page(DIRECT, STEPS_AT + 1)
    with pytest.raises(ServerError, match="direct answered"):
        stepping.answered(DIRECT, values, STEPS_AT + 2)


def test_a_changed_answer_before_the_scrape_fails(stepping: Stepping) -> None:
    with pytest.raises(ServerError, match="prometheus answered"):
        stepping.answered(PROMETHEUS, [AFTER], STEPS_AT + 2)
