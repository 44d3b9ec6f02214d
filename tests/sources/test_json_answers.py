"""JSON of servers, bounded in what it becomes."""

import json
import struct
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.observation import Points
from keda_gpu_scaler.sources import json_answers
from keda_gpu_scaler.sources.json_answers import LABEL_BYTES, POINT_BYTES, WORDS_BYTES, Room
from keda_gpu_scaler.transport.client import Answer

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
)
RAW = Decoder(json_answers.Text)


def raw(value: object) -> json_answers.Text:
    return RAW.decode(json.dumps(value).encode())


def answer(body: bytes, limit_bytes: int = 4096) -> Answer:
    return Answer(200, "application/json", body, limit_bytes=limit_bytes)


def room(limit_bytes: int = 4096) -> Room:
    opened = Room()
    opened.open(answer(b"{}", limit_bytes))
    return opened


@pytest.mark.parametrize("body", [b"{}," * 40, b"[" * 140])
def test_more_objects_or_lists_than_usual_are_not_read(body: bytes) -> None:
    with pytest.raises(errors.SourceMalformedError, match=r"an answer with more than .* times"):
        Room().open(answer(body))


def test_labels_that_are_huge_are_not_read() -> None:
    with pytest.raises(errors.SourceMalformedError, match=r"a part of 16,.* bytes"):
        room().labels([raw({"a": "x" * LABEL_BYTES})])


def test_rows_may_take_twice_the_limit_of_the_answer() -> None:
    opened = room()
    for number in range(14):
        opened.labels([raw({"pod": f"bert-{number:02}"})])
    with pytest.raises(errors.SourceMalformedError, match="rows of more than 8192 bytes"):
        opened.labels([raw({"pod": "x" * 1000})])


def test_texts_and_times_that_repeat_take_their_room_once() -> None:
    opened, points = room(), [(float(at), "1") for at in range(20)]
    for _ in range(8):
        (labels,) = opened.labels([raw({"namespace": "n" * 300})])
        assert opened.points(points) == [(float(at), 1.0) for at in range(20)]
    assert labels == {"namespace": "n" * 300}


def test_points_can_be_taken_like_a_list() -> None:
    found = room().points([(1.0, "2"), (3.0, "4"), (5.0, "NaN")])
    assert (found[0], found[:2], len(found)) == ((1.0, 2.0), [(1.0, 2.0), (3.0, 4.0)], 3)
    assert found != 7


@given(JSON)
def test_a_servers_words_are_text_whatever_they_are(value: object) -> None:
    said = json_answers.words(raw(value))
    assert said == value or json.loads(said) == value


def test_words_that_are_huge_are_counted() -> None:
    assert json_answers.words(raw("x" * WORDS_BYTES)) == f"a text of {WORDS_BYTES + 2:,} bytes"


def test_what_is_nested_too_deeply_is_no_value() -> None:
    with pytest.raises(ValueError, match=r"."):
        json_answers.decoded(b"[" * 100_000 + b"]" * 100_000, Decoder())


@pytest.mark.parametrize(("value", "is_list"), [([], True), ({}, False), ("[", False)])
def test_a_list_is_told_from_other_parts(value: object, *, is_list: bool) -> None:
    assert json_answers.is_list(raw(value)) is is_list


NUMERALS = st.text("0123456789+-.eE", max_size=4) | st.floats().map(repr)
TIMES = st.integers(-5, 2**40) | st.floats(-9, 2e9)
WELL_FORMED = st.lists(st.tuples(TIMES, NUMERALS | st.integers(0, 100).map(str)), max_size=4)
ODD_TEXTS = [
    "NaN",
    "+Inf",
    "-Inf",
    "-0",
    "",
    "1,2",
    ",",
    "1]",
    " 1",
    "1_0",
    "1e400",
    '"',
    "\\",
    "é",
]
ODD_POINTS = st.lists(st.tuples(TIMES, NUMERALS | st.sampled_from(ODD_TEXTS)), max_size=4)
RANGES = st.lists(WELL_FORMED | ODD_POINTS | JSON, max_size=4)
TIMED_NUMBERS = Decoder(list[tuple[float, str]])


def packed(found: Iterable[tuple[float, float]]) -> list[bytes]:
    """Tell apart what compares as equal, and compare NaN with itself."""
    return [struct.pack("2d", *point) for point in found]


def one_by_one(texts: list[json_answers.Text]) -> list[Points]:
    opened = room()
    every = [json_answers.decoded(text, TIMED_NUMBERS) for text in texts]
    return [opened.points(found) for found in every]


@given(RANGES, st.sampled_from([(",", ":"), (", ", ": "), (",\n", ":")]))
@example([[(0, "1"), (15, "2.5")], [(0, "+1")]], (",", ":"))
@example([[(0, "1")], [], [(0, "-0")]], (",", ":"))
@example([[(0, "NaN")], [(0, "1e400")]], (",", ":"))
@example([[(0, "1,2")], [(0, "")]], (",", ":"))
def test_points_of_many_rows_are_read_as_each_row_is_alone(
    ranges: list[object], separators: tuple[str, str]
) -> None:
    texts = [RAW.decode(json.dumps(each, separators=separators).encode()) for each in ranges]
    try:
        expected = one_by_one(texts)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            room().ranges(texts)
    else:
        found = room().ranges(texts)
        assert [packed(each) for each in found] == [packed(each) for each in expected]


@given(st.floats(0, allow_infinity=False), st.integers(0, 10**19), st.integers(0, 30))
def test_a_number_is_the_same_in_whatever_way_it_is_read(
    value: float, whole: int, digits: int
) -> None:
    for text in (repr(value), f"{value:.{digits}f}", f"{value:.{digits}e}", str(whole)):
        text_of_it = text.replace("e+", "e")
        (found,) = room().ranges([raw([[0, text_of_it]])])
        assert packed(found) == packed([(0.0, float(text))])


def test_points_that_are_huge_are_not_read() -> None:
    huge = raw([[0, "1" * POINT_BYTES]])
    for texts in ([huge], [raw([[0, "1"]]), huge]):
        with pytest.raises(errors.SourceMalformedError, match=r"a part of 1,048,.* bytes"):
            room(2**26).ranges(texts)


@given(st.lists(st.dictionaries(st.text(max_size=3), st.text("ab", max_size=2)), min_size=1))
def test_labels_of_many_rows_are_read_as_each_row_is_alone(
    given_rows: list[dict[str, str]],
) -> None:
    texts = [raw(labels) for labels in given_rows]
    assert room(2**20).labels(texts) == given_rows
    long = raw({"long": "x" * 2000})
    assert room(2**20).labels([*texts, long]) == [*given_rows, {"long": "x" * 2000}]


def test_rows_take_the_same_room_alone_and_together() -> None:
    texts = [raw({"pod": f"bert-{number:02}"}) for number in range(12)]
    together, alone = room(), room()
    together.labels(texts)
    for text in texts:
        alone.labels([text])
    for opened in (together, alone):
        opened.labels([raw({"pod": "x" * 200})])
        with pytest.raises(errors.SourceMalformedError, match="rows of more than 8192 bytes"):
            opened.labels([raw({"pod": "y" * 700})])
