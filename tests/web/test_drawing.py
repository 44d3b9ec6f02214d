"""Curves: what is not known is a gap, and nothing is drawn outside of its frame."""

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.web import drawing
from keda_gpu_scaler.web.drawing import Period, Span, Step

PERIOD = Period(1000.0, 2000.0)
VALUES = st.none() | st.floats(0, 1e15)
TIMES = st.lists(st.floats(0, 3000), max_size=12).map(sorted)


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    """Steps in the order of their times, within the period and around it."""
    return [(at, draw(VALUES)) for at in draw(TIMES)]


@pytest.mark.parametrize(
    ("given_steps", "spans"),
    [
        ([], []),
        ([(500, 1)], [Span(1000, 2000, 1)]),
        ([(500, 1), (900, 2)], [Span(1000, 2000, 2)]),
        ([(1500, 1)], [Span(1500, 2000, 1)]),
        ([(1500, 1), (1700, 1)], [Span(1500, 2000, 1)]),
        ([(500, 1), (1500, None)], [Span(1000, 1500, 1), Span(1500, 2000, None)]),
        ([(2500, 1)], []),
    ],
    ids=["nothing", "from before", "the newer", "from within", "equal", "a gap", "later"],
)
def test_a_value_holds_until_the_next_one(given_steps: list[Step], spans: list[Span]) -> None:
    assert list(PERIOD.spans(given_steps)) == spans


@given(steps())
def test_spans_follow_each_other_until_now(found: list[Step]) -> None:
    spans = list(PERIOD.spans(found))
    for before, after in pairwise(spans):
        assert before.end == after.begin
        assert before.value != after.value
    assert all(PERIOD.since <= span.begin < span.end <= PERIOD.now for span in spans)
    assert not spans or spans[-1].end == PERIOD.now


@given(steps(), st.none() | st.floats(0.1, 1e15))
def test_every_drawing_is_xml_within_its_frame(found: list[Step], level: float | None) -> None:
    for text in (drawing.curve(found, PERIOD, level), drawing.spark(found, PERIOD.now) or "<svg/>"):
        drawn = ET.fromstring(text)  # noqa: S314 - our own text
        _, _, width, height = map(float, drawn.get("viewBox", "0 0 0 0").split())
        for path in drawn.iter("path"):
            for command, number in re.findall(r"([HV])(-?[\d.]+)", path.get("d", "")):
                assert -0.1 <= float(number) <= (width if command == "H" else height) + 0.1
        for rect in drawn.iter("rect"):
            assert float(rect.get("x", "0")) + float(rect.get("width", "0")) <= width + 0.2


@given(st.floats(0, 1e15), st.floats(0, 1e15), st.none() | st.floats(0, 1e15))
def test_a_bar_is_no_longer_than_its_track(value: float, whole: float, level: float | None) -> None:
    drawn = ET.fromstring(drawing.bar(value, whole, level))  # noqa: S314 - our own text
    track, filled = (float(rect.get("width", "")) for rect in drawn.iter("rect"))
    assert 0 <= filled <= track


def test_what_is_not_known_is_a_gap_and_said_to_be_one() -> None:
    partly = drawing.spark([(1000.0, 5.0), (1500.0, None)], 2000.0)
    assert 'aria-label="from 5 to 5, with gaps"' in partly
    assert 'class="gap"' in partly
    unknown = drawing.spark([(1000.0, None)], 2000.0)
    assert 'aria-label="not known"' in unknown
    assert 'class="line" d=""' in unknown
    assert drawing.spark([], 2000.0) == ""


def test_activity_is_told_by_the_height_of_a_ribbon() -> None:
    steps: list[Step] = [(1000.0, True), (1250.0, False), (1500.0, None)]
    drawn = ET.fromstring(drawing.ribbon(steps, PERIOD))  # noqa: S314 - our own text
    told = {rect.get("class"): float(rect.get("height", "")) for rect in drawn.iter("rect")}
    assert told == {"on": 10, "off": 3, "gap": 14}


def test_a_timeline_is_marked_at_both_ends() -> None:
    assert PERIOD.ticks == [1000, 1250, 1500, 1750, 2000]
    assert Period(5.0, 5.0).share(5.0) == 0
