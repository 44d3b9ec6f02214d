"""What is taken for a lag, and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.sources.evaluation_times import (
    LEAST_SECONDS,
    MOST_SECONDS,
    WATCHED_SECONDS,
    Lag,
)

STEP = 15.0


def after(*ages: float, every: float = STEP) -> Lag:
    """Return the lag after the newest sample was so old, time after time."""
    lag = Lag(STEP)
    for number, age in enumerate(ages):
        lag.observe(number * every, age)
    return lag


@pytest.mark.parametrize(
    ("ages", "seconds"),
    [
        pytest.param([150.0] * 9, 150, id="constant"),
        pytest.param([149.0, 161.0, 155.0] * 3, 150, id="the least of ages, in whole steps"),
        pytest.param([91.0, 106.0, 121.0, 136.0] * 3, 105, id="samples that come in batches"),
        pytest.param([150.0] * 8, 0, id="not for long enough"),
        pytest.param([60.0] * 9, 0, id="fresh"),
        pytest.param([MOST_SECONDS + 1] * 9, 0, id="older than a server shows samples"),
        pytest.param([61.0 + 15 * n for n in range(30)], 0, id="the newest stands still"),
        pytest.param([60.0 + 8 * n for n in range(30)], 0, id="half as fast as time, and slower"),
        pytest.param([70.0 + 2 * n for n in range(31)], 120, id="it grows slowly"),
        pytest.param([150.0] * 9 + [151.0 + 15 * n for n in range(20)], 150, id="then it stops"),
        pytest.param([150.0] * 9 + [100.0], 105, id="it is less late at once"),
        pytest.param([150.0] * 9 + [5.0], 0, id="it catches up at once"),
        pytest.param([150.0] * 9 + [5.0] + [150.0] * 8, 0, id="once it was on time between"),
    ],
)
def test_a_lag_is_an_age_that_stays_the_same(ages: list[float], seconds: float) -> None:
    assert after(*ages).seconds == seconds


def test_two_looks_that_are_far_apart_are_enough() -> None:
    assert after(150.0, 150.0, every=300.0).seconds == 150
    assert after(150.0, 450.0, every=300.0).seconds == 0


def test_an_earlier_look_tells_nothing_new() -> None:
    lag = after(*[150.0] * 9)
    lag.observe(WATCHED_SECONDS - STEP, 0.0)
    assert lag.seconds == 150


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=60), st.floats(1, 300))
def test_no_sample_is_taken_for_newer_than_it_is(ages: list[float], every: float) -> None:
    """The lag is never longer than the newest sample was old lately, but for a step."""
    lag = Lag(STEP)
    for number, age in enumerate(ages):
        lag.observe(number * every, age)
        assert lag.seconds == 0 or LEAST_SECONDS < lag.seconds < age + STEP
