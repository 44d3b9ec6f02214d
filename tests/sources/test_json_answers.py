"""JSON of servers, bounded in what it becomes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.sources import json_answers
from keda_gpu_scaler.sources.json_answers import LABEL_BYTES, WORDS_BYTES, Room
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
        room().labels(raw({"a": "x" * LABEL_BYTES}))


def test_rows_may_take_twice_the_limit_of_the_answer() -> None:
    opened = room()
    for number in range(14):
        opened.labels(raw({"pod": f"bert-{number:02}"}))
    with pytest.raises(errors.SourceMalformedError, match="rows of more than 8192 bytes"):
        opened.labels(raw({"pod": "x" * 1000}))


def test_texts_and_times_that_repeat_take_their_room_once() -> None:
    opened, points = room(), [(float(at), "1") for at in range(20)]
    for _ in range(8):
        labels = opened.labels(raw({"namespace": "n" * 300}))
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
