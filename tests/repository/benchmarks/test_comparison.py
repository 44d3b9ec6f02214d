"""A median has an interval, a row a goal, and a goal is met by the whole interval."""

from itertools import pairwise
from math import comb
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.comparison import CONFIDENCE, Goal, Row, interval
from benchmarks.plots import share_of_goal

FIGURES = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=40)


def row(
    measured: list[float],
    reference: list[float] | None = None,
    goal: Goal | None = None,
    limit: float | None = None,
) -> Row:
    """Return a row with these rounds."""
    return Row(
        key="what.key",
        name="what",
        unit="ms",
        measured=measured,
        reference_name="other",
        reference=[1.0] * len(measured) if reference is None else reference,
        goal=goal,
        limit=limit,
    )


def coverage(count: int, rank: int) -> float:
    """Return how likely the real median is between the order statistics of this rank."""
    outside = 2 * sum(comb(count, cut) for cut in range(rank + 1))
    return 1 - outside / float(2**count)


@given(FIGURES)
def test_an_interval_holds_the_median_and_is_made_of_what_was_measured(
    figures: list[float],
) -> None:
    found = interval(figures)
    assert found.low <= found.median <= found.high
    assert {found.low, found.high} <= set(figures)
    assert found.median == median(figures)


@given(FIGURES, st.randoms(use_true_random=False))
def test_the_order_of_rounds_does_not_matter(figures: list[float], chance: object) -> None:
    mixed = list(figures)
    chance.shuffle(mixed)  # type: ignore[attr-defined]  # a random.Random
    assert interval(mixed) == interval(figures)


@given(st.integers(5, 60))
def test_the_interval_is_the_narrowest_of_ninety_percent(count: int) -> None:
    found = interval([float(number) for number in range(count)])
    rank = int(found.low)
    assert found.high == count - 1 - rank
    assert coverage(count, rank) >= CONFIDENCE
    is_last = rank == (count - 1) // 2
    assert is_last or coverage(count, rank + 1) < CONFIDENCE


def test_of_ten_rounds_it_is_from_the_second_to_the_ninth() -> None:
    assert interval([float(number) for number in range(1, 11)]) == interval(range(1, 11))
    found = interval(range(1, 11))
    assert (found.low, found.median, found.high) == (2, 5.5, 9)
    assert coverage(10, 1) == pytest.approx(0.979, abs=0.001)
    assert coverage(10, 2) == pytest.approx(0.891, abs=0.001)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_few_rounds_have_their_whole_range(count: int) -> None:
    found = interval(range(count))
    assert (found.low, found.high) == (0, count - 1)


def test_nothing_measured_is_no_interval() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        interval([])


def test_a_ratio_is_taken_within_each_round() -> None:
    found = row([2.0, 30.0], [1.0, 10.0]).ratio
    assert found is not None
    assert (found.median, found.low, found.high) == (2.5, 2, 3)


def test_a_reference_of_nothing_has_no_ratio_and_its_figure_is_judged() -> None:
    one = row([2.0, 3.0], [0.0, 1.0], Goal.FIGURE_AT_MOST, 3)
    assert one.ratio is None
    assert one.judged == one.figure
    assert one.is_met


@pytest.mark.parametrize(
    ("measured", "reference", "goal", "limit"),
    [
        ([], [], None, None),
        ([1.0], [1.0, 2.0], None, None),
        ([1.0], [1.0], Goal.RATIO_AT_MOST, None),
        ([1.0], [1.0], None, 1.0),
    ],
)
def test_rounds_without_a_pair_and_half_a_goal_are_refused(
    measured: list[float], reference: list[float], goal: Goal | None, limit: float | None
) -> None:
    with pytest.raises(ValueError, match=r"what\.key: a "):
        row(measured, reference, goal, limit)


@pytest.mark.parametrize(
    ("goal", "measured", "is_met"),
    [
        (Goal.RATIO_AT_MOST, [0.8, 0.9, 1.0], True),
        (Goal.RATIO_AT_MOST, [0.8, 0.9, 1.1], False),
        (Goal.RATIO_AT_LEAST, [1.0, 1.1, 1.2], True),
        (Goal.RATIO_AT_LEAST, [0.9, 1.1, 1.2], False),
        (Goal.FIGURE_AT_MOST, [0.8, 0.9, 1.0], True),
        (Goal.FIGURE_AT_MOST, [0.8, 0.9, 1.1], False),
    ],
)
def test_a_goal_is_met_if_the_whole_interval_is_on_its_side(
    goal: Goal, measured: list[float], *, is_met: bool
) -> None:
    one = row(measured, goal=goal, limit=1.0)
    assert one.is_met is is_met
    assert (share_of_goal(one).high <= 1) is is_met


def test_a_row_without_a_goal_is_neither_met_nor_missed() -> None:
    assert row([1.0]).is_met is None
    with pytest.raises(ValueError, match="has no goal"):
        share_of_goal(row([1.0]))


@given(FIGURES, st.sampled_from(Goal))
def test_what_is_drawn_is_in_the_order_of_better_to_worse(figures: list[float], goal: Goal) -> None:
    share = share_of_goal(row(figures, goal=goal, limit=2.0))
    assert all(one <= other for one, other in pairwise((share.low, share.median, share.high)))
