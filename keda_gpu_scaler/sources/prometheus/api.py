"""Prometheus' HTTP answers → rows, or an error with the server's own words.

Pure. A partial answer is an error: the pods that are missing from it would seem to be gone. So
warnings and `isPartial` are errors; remarks about a query's style are not.
"""

import contextlib
import math
import re
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.observation import Row
from keda_gpu_scaler.sources import json_answers
from keda_gpu_scaler.sources.json_answers import (
    BATCH_ROWS,
    NOTHING,
    POINT_BYTES,
    WORDS_BYTES,
    Room,
    Text,
)
from keda_gpu_scaler.sources.query_client import countable
from keda_gpu_scaler.transport.client import OK, Answer, printable

WHOLE_ANSWERS = {"partial_response": "false", "deny_partial_response": "1"}
"""Asks Thanos, and VictoriaMetrics' cluster, to refuse a query rather than to answer in part.

They also warn about partial answers, but a proxy may drop the warnings."""
_REMARK = "PromQL info:"
"""Prometheus 2.48 and similar versions put remarks among the warnings; later ones separate them."""
_REPEATED_TEXT = re.compile(
    r'(?:error when executing query=|cannot evaluate )"(?:[^"\\]|\\.)*+"(?: for \([^()]*+\))?: ',
    re.DOTALL,
)
"""VictoriaMetrics repeats the query before the reason of an error. The reason would be cut off, and
values that a trigger takes from the environment would be shown.

Linear: what an attempt reads ends at a quote or a parenthesis, before the next one can begin."""


class Clock(NamedTuple):
    """The time of a server, and what the answer shows about the server."""

    seconds: float
    takes_long_queries: bool
    """VictoriaMetrics does not by default; it is recognised because it has no scalars."""


class _Body(msgspec.Struct):
    status: Text = NOTHING
    data: Text = NOTHING
    kind: Text = msgspec.field(default=NOTHING, name="errorType")
    error: Text = NOTHING
    warnings: Text = NOTHING
    is_partial: Text = msgspec.field(default=NOTHING, name="isPartial")


class _Result(msgspec.Struct):
    kind: str = msgspec.field(default="", name="resultType")
    found: Text = msgspec.field(default=NOTHING, name="result")


class _Series(msgspec.Struct, gc=False):
    metric: Text
    values: Text


class _Element(msgspec.Struct, gc=False):
    metric: Text
    value: tuple[float, str]


RowT = TypeVar("RowT")


class _Rows(msgspec.Struct, Generic[RowT]):
    kind: str = msgspec.field(name="resultType")
    found: list[RowT] = msgspec.field(name="result")


class _Whole(_Body, Generic[RowT], kw_only=True):
    data: _Rows[RowT]  # type: ignore[assignment]  # read at once with the rest


class _Number(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


_BODY, _RESULT = Decoder(_Body), Decoder(_Result)
_SERIES, _ELEMENTS = Decoder(list[_Series]), Decoder(list[_Element])
_MATRIX, _VECTOR = Decoder(_Whole[_Series]), Decoder(_Whole[_Element])
_NUMBERS = Decoder(list[_Number])
_POINT = Decoder(tuple[float, str])
PART_BYTES = 128 * 1024
"""Of an answer's rows that are told apart at a time: a fifth of a millisecond's work."""
_BEGIN, _BETWEEN, _END = b'"result":[', b',{"metric":', b"}]}"
"""Around the rows, and between two of them, as servers write it."""
_ONCE = b'"data"', b'"result"'
"""What holds the rows; of a name that is there twice, the last one counts."""


def matrix(answer: Answer, room: Room | None = None) -> list[Row]:
    """Return the series of a range result.

    Args:
        answer: the server's answer.
        room: for the rows of all parts of a query; None: there is one part.

    Raises:
        errors.SourceRefusedError: the server answered with an error.
        errors.SourceMalformedError: the answer is partial, of the wrong shape, or takes more memory
            than it may.
    """
    room, rows = room or Room(), list[Row]()
    try:
        for batch in _batches(answer, room, rows, "matrix", _MATRIX, _SERIES):
            labels = room.labels([one.metric for one in batch])
            ranges = room.ranges([one.values for one in batch])
            rows += [Row(*one) for one in zip(labels, ranges, strict=True) if one[1].times]
    except ValueError as error:
        raise errors.SourceMalformedError("a matrix of the wrong shape") from error
    return rows


def vector(answer: Answer, room: Room | None = None) -> list[Row]:
    """Return the elements of an instant result as rows of one point, as `matrix` does."""
    room, rows = room or Room(), list[Row]()
    try:
        for batch in _batches(answer, room, rows, "vector", _VECTOR, _ELEMENTS):
            labels = room.labels([one.metric for one in batch])
            rows += map(Row, labels, [room.points([one.value]) for one in batch])
    except ValueError as error:
        raise errors.SourceMalformedError("a vector of the wrong shape") from error
    return rows


def _batches(  # noqa: PLR0913, PLR0917 - what is read, how, and where it goes
    answer: Answer,
    room: Room,
    taken: list[Row],
    kind: str,
    at_once: Decoder[_Whole[RowT]],
    rows: Decoder[list[RowT]],
) -> Iterator[list[RowT]]:
    """Yield the rows of an answer, a few hundred at a time.

    A large one is cut between its rows, so that no part of it holds the interpreter for long. If
    that fails, what was made of it is taken back, and it is read again as a whole.

    Raises:
        ValueError: its rows are of the wrong shape.
        errors.SourceError: another part of it is not as it should be.
    """
    if len(answer.body) > PART_BYTES:
        before, count = room.mark(), len(taken)
        try:
            for found in _parts(answer, room, kind, at_once, rows):
                yield from _few(found)
        except (ValueError, errors.SourceMalformedError):
            room.take_back(before)
            del taken[count:]
        else:
            return
    yield from _few(_rows(answer, room, kind, at_once, rows))


def _few(rows: list[RowT]) -> Iterator[list[RowT]]:
    return (rows[begin : begin + BATCH_ROWS] for begin in range(0, len(rows), BATCH_ROWS))


def _parts(
    answer: Answer,
    room: Room,
    kind: str,
    at_once: Decoder[_Whole[RowT]],
    rows: Decoder[list[RowT]],
) -> Iterator[list[RowT]]:
    """Yield the rows of a usual answer, part by part.

    What comes before the rows and what comes after them is small, and is JSON with an empty list of
    rows. Each part in between is a list of rows in JSON. So all of it is JSON with all these rows.

    Raises:
        ValueError: it is no usual answer.
        errors.SourceMalformedError: there are more objects or lists than in any usual answer.
    """
    room.open(answer)
    body = memoryview(answer.body)
    begin = answer.body.find(_BEGIN, 0, PART_BYTES) + len(_BEGIN)
    end = answer.body.rfind(_END, max(begin, len(body) - PART_BYTES)) + 1
    before, rest = bytes(body[:begin]), bytes(body[end:])
    if not before.endswith(_BEGIN) or not end or b"\\" in before + rest:
        raise ValueError("its rows are not where they usually are")
    if any(name in rest for name in _ONCE):
        raise ValueError("it may have rows twice")
    frame = json_answers.decoded(before + rest, at_once)
    if frame.data.found or not _is_usual(answer, frame, kind):
        raise ValueError("it is no usual answer")
    while begin < end:
        cut = answer.body.find(_BETWEEN, begin + PART_BYTES, end)
        last = end if cut < 0 else cut
        found = json_answers.decoded(b"".join((b"[", body[begin:last], b"]")), rows)
        if not found:
            raise ValueError("nothing between two commas")
        yield found
        begin = last + 1


def _is_usual(answer: Answer, body: _Whole[RowT], kind: str) -> bool:
    """Tell whether it answers all of the query, with rows of this kind."""
    is_whole = json_answers.words(body.status) == "success" and not _missing(body)
    return answer.status == OK and is_whole and body.data.kind == kind


def _rows(
    answer: Answer,
    room: Room,
    kind: str,
    at_once: Decoder[_Whole[RowT]],
    rows: Decoder[list[RowT]],
) -> list[RowT]:
    """Return the rows of an answer, read once if it is as usual.

    Otherwise it is read part by part, and the error says which part is wrong.

    Raises:
        ValueError: its rows are of the wrong shape.
        errors.SourceError: another part of it is not as it should be.
    """
    with contextlib.suppress(ValueError, errors.SourceMalformedError):
        room.open(answer)
        body = json_answers.decoded(answer.body, at_once)
        if _is_usual(answer, body, kind):
            return body.data.found
    found = _result(answer, kind).found
    room.open(answer)
    return json_answers.decoded(found, rows)


def clock(answer: Answer) -> Clock:
    """Return the result of `time()`; raises as `number` does."""
    result = _result(answer, "scalar", "vector")
    try:
        (seconds,) = _values(result)
    except ValueError as error:
        raise errors.SourceMalformedError("a scalar of the wrong shape") from error
    if not math.isfinite(seconds):
        raise errors.SourceMalformedError(f"a scalar that is no number: {seconds}")
    return Clock(seconds, takes_long_queries=result.kind == "scalar")


def number(answer: Answer) -> float | None:
    """Return the one number of a result; None: it has no element.

    Raises:
        errors.SourceRefusedError: the server answered with an error.
        errors.SourceMalformedError: the answer is partial, of the wrong shape, or not one number
            that KEDA can count with.
    """
    result = _result(answer, "scalar", "vector")
    try:
        values = _values(result)
    except ValueError as error:
        raise errors.SourceMalformedError("a number of the wrong shape") from error
    if len(values) > 1:
        raise errors.SourceMalformedError(
            f"{len(values)} elements instead of one number; sum(...) or max(...) makes one of them"
        )
    return countable(values[0]) if values else None


def _values(result: _Result) -> list[float]:
    """Return the one value of a scalar, or the values of a vector."""
    if result.kind == "scalar":
        _, value = json_answers.part(result.found, _POINT, POINT_BYTES)
        return [float(value)]
    elements = json_answers.part(result.found, _NUMBERS, POINT_BYTES)
    return [float(one.value[1]) for one in elements]


def _result(answer: Answer, *kinds: str) -> _Result:
    body = json_answers.body(answer, _BODY, "Prometheus' JSON")
    if answer.status != OK or json_answers.words(body.status) != "success":
        raise errors.SourceRefusedError(_refusal(answer, body))
    if partial := _missing(body):
        raise errors.SourceMalformedError(f"an incomplete answer: {printable(str(partial))}")
    try:
        result = json_answers.decoded(body.data, _RESULT)
    except ValueError:
        result = _Result()
    if result.kind not in kinds:
        wanted = " or ".join(kinds)
        raise errors.SourceMalformedError(f"an answer without a result of type {wanted}")
    if not json_answers.is_list(result.found):
        raise errors.SourceMalformedError(f"a {result.kind} that is no list")
    return result


def _missing(body: _Body) -> list[str]:
    """Return what says that an answer is not complete."""
    try:
        given = json_answers.part(body.warnings, json_answers.STRINGS, WORDS_BYTES)
    except ValueError:
        given = [] if body.warnings == NOTHING else [json_answers.words(body.warnings)]
    warnings = [one for one in given if not one.startswith(_REMARK)]
    is_partial = json_answers.words(body.is_partial) not in ("null", "false")
    return warnings or ["the answer is partial"] * is_partial


def _refusal(answer: Answer, body: _Body) -> str:
    kind, words = _said(body.kind, "error"), _said(body.error, "no reason given")
    return printable(f"HTTP {answer.status}, {kind}: {_REPEATED_TEXT.sub('', words)}")


def _said(text: Text, otherwise: str) -> str:
    return otherwise if text == NOTHING else json_answers.words(text)
