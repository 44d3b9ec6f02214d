"""What the API server writes, read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.autoscaling import api_objects


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("70", 70),
        ("52500m", 52.5),
        ("33.334", 33.334),
        ("1500u", 0.0015),
        ("2n", 2e-9),
        ("1k", 1000),
        ("3M", 3e6),
        ("1E", 1e18),
        ("-5", -5),
        (None, None),
        ("", None),
        ("5e3", None),
        ("1Ki", None),
        ("seventy", None),
        ("1" * 30, None),
        ("५", None),
    ],
)
def test_a_quantity_is_a_number_or_unknown(text: str | None, number: float | None) -> None:
    expected = None if number is None else pytest.approx(number)
    assert api_objects.quantity(text) == expected


@given(st.text(max_size=40))
def test_no_text_breaks_the_reader_of_quantities(text: str) -> None:
    number = api_objects.quantity(text)
    assert number is None or isinstance(number, float)


def test_the_time_of_day_is_that_of_utc() -> None:
    assert api_objects.clock(1767268800) == "12:00:00Z"
