"""A run is worse than what is committed only beyond the noise of both."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.comparison import Goal, Row
from benchmarks.regressions import is_worse, regressions
from tests.repository.benchmarks.test_comparison import row

GOALS = st.sampled_from([None, *Goal])


def judged(figures: list[float], goal: Goal | None) -> Row:
    return row(figures, goal=goal, limit=None if goal is None else 1.0)


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=12), GOALS)
def test_a_run_is_not_worse_than_itself(figures: list[float], goal: Goal | None) -> None:
    assert not is_worse(judged(figures, goal), judged(figures, goal))


@given(
    st.lists(st.floats(1, 10), min_size=1, max_size=12),
    st.lists(st.floats(11, 100), min_size=1, max_size=12),
    GOALS,
)
def test_all_rounds_on_the_worse_side_are_worse_and_on_the_other_better(
    low: list[float], high: list[float], goal: Goal | None
) -> None:
    is_rate = goal is Goal.RATIO_AT_LEAST
    assert is_worse(judged(high, goal), judged(low, goal)) is not is_rate
    assert is_worse(judged(low, goal), judged(high, goal)) is is_rate


@pytest.mark.parametrize("goal", Goal)
def test_intervals_that_touch_are_noise(goal: Goal) -> None:
    one, other = judged([1.0, 2.0, 3.0], goal), judged([3.0, 4.0, 5.0], goal)
    assert not is_worse(one, other)
    assert not is_worse(other, one)


def test_a_regression_says_what_it_was_and_by_how_much_it_is_worse() -> None:
    (found,) = regressions([row([3.0, 3.0])], [row([2.0, 2.0])])
    assert str(found) == "what: 3 (3 to 3), committed 2 (2 to 2): +50%"


def test_a_row_that_only_one_of_them_has_is_no_regression() -> None:
    other = dataclasses.replace(row([1.0]), key="another")
    assert regressions([row([9.0]), other], []) == []
    assert regressions([], [row([1.0])]) == []


def test_a_floor_that_rises_is_no_regression() -> None:
    floor = dataclasses.replace(row([9.0]), is_ours=False)
    assert regressions([floor], [row([1.0])]) == []
