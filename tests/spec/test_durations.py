"""Durations: what people write, what is refused, and that text and number agree."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.spec import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("2m", 120),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("500ms", 0.5),
        ("1m0.5s", 60.5),
        ("1d", 86_400),
        ("1d2h3m4s5ms", 93_784.005),
        ("0s", 0),
        ("090s", 90),
        ("9" * 400 + "s", math.inf),
    ],
)
def test_go_and_prometheus_durations_are_read(text: str, seconds: float) -> None:
    assert durations.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    ["", "120", "-1s", "+1s", "1 s", "s", "1x", "1m1h", "1s1s", "1e3s", ".5s", "5.s", "1h\n", "٣s"],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="a duration such as 30s, 2m or 1h30m") as caught:
        durations.parse(text)
    hint = " (a number needs a unit: s, m or h)"
    assert str(caught.value).endswith(hint if text == "120" else "1h30m")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (15, "15s"),
        (120, "2m"),
        (5400, "1h30m"),
        (0.25, "250ms"),
        (1.5, "1s500ms"),
        (86_400, "1d"),
        (59.9999, "1m"),
        (0.0001, "0s"),
        (-15, "-15s"),
    ],
)
def test_the_shortest_text_is_written(seconds: float, text: str) -> None:
    assert durations.text(seconds) == text


@given(st.integers(0, 10**12))
def test_what_is_written_is_read_back(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert durations.parse(durations.text(seconds)) == pytest.approx(seconds, abs=0.0005)
