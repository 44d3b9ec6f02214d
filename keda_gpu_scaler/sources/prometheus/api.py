"""Prometheus' HTTP answers → rows, or an error with the server's own words.

Pure. What the server refuses is a SourceRefusedError, and any other answer than a whole and right
one is a SourceMalformedError: the pods that are missing from a partial one would seem to be gone.
So warnings and `isPartial` are errors; remarks about a query's style are not.
"""

import math
import re
from array import array
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.observation import Points, Row
from keda_gpu_scaler.sources import json_answers
from keda_gpu_scaler.sources.query_client import countable
from keda_gpu_scaler.transport.client import OK, Answer, printable

WHOLE_ANSWERS = {"partial_response": "false", "deny_partial_response": "1"}
"""Asks Thanos, and VictoriaMetrics' cluster, to refuse a query rather than to answer in part.

They also warn about partial answers, but a proxy may drop the warnings."""
_REMARK = "PromQL info:"
"""Prometheus 2.48 and similar versions put remarks among the warnings; later ones separate them."""
_WORDS_CHARACTERS = 128 * 1024
"""Of an error, in which a server may repeat a query of 16 KiB several times."""
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


class _Result(msgspec.Struct):
    kind: str = msgspec.field(name="resultType")
    text: msgspec.Raw = msgspec.field(name="result")


class _Body(msgspec.Struct):
    status: str = ""
    kind: str = msgspec.field(default="error", name="errorType")
    error: str = "no reason given"
    warnings: list[str] | None = None
    is_partial: bool | None = msgspec.field(default=None, name="isPartial")
    data: _Result | None = None


class _Series(msgspec.Struct, gc=False):
    metric: msgspec.Raw
    points: msgspec.Raw = msgspec.field(name="values")


class _Element(msgspec.Struct, gc=False):
    metric: msgspec.Raw
    points: msgspec.Raw = msgspec.field(name="value")


class _Number(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


_BODY, _LABELS = Decoder(_Body), Decoder(dict[str, str])
_SERIES, _ELEMENTS = Decoder(list[_Series]), Decoder(list[_Element])
_POINTS, _POINT = Decoder(list[tuple[float, str]]), Decoder(tuple[float, str])
_NUMBERS = Decoder(list[_Number])


def matrix(answer: Answer) -> list[Row]:
    """Return the series of a range result that have points."""
    return _rows(answer, "matrix", _SERIES, _POINTS.decode)


def vector(answer: Answer) -> list[Row]:
    """Return the elements of an instant result as rows of one point."""
    return _rows(answer, "vector", _ELEMENTS, lambda point: [_POINT.decode(point)])


def _rows(
    answer: Answer,
    kind: str,
    decoder: Decoder[list[_Series]] | Decoder[list[_Element]],
    read: Callable[[msgspec.Raw], list[tuple[float, str]]],
) -> list[Row]:
    """Return the rows of an answer; times that they have in common are the same tuple."""
    result = _result(answer, kind)
    rows, shared = list[Row](), dict[tuple[float, ...], tuple[float, ...]]()
    try:
        for series in decoder.decode(result.text):
            labels, points = _LABELS.decode(series.metric), read(series.points)
            if points:
                times, texts = zip(*points, strict=True)
                numbers = array("d", map(float, texts))
                rows.append(Row(labels, Points(shared.setdefault(times, times), numbers)))
    except json_answers.UNREADABLE as error:
        raise json_answers.wrong_shape(f"a {kind}", error) from error
    return rows


def clock(answer: Answer) -> Clock:
    """Return the result of `time()`."""
    result = _result(answer, "scalar", "vector")
    values = _values(result)
    if len(values) != 1 or not math.isfinite(values[0]):
        words = printable(str(values))
        raise errors.SourceMalformedError(f"{words} instead of one number of seconds")
    return Clock(values[0], takes_long_queries=result.kind == "scalar")


def number(answer: Answer) -> float | None:
    """Return the one number of a result; None: it has no element."""
    values = _values(_result(answer, "scalar", "vector"))
    if len(values) > 1:
        raise errors.SourceMalformedError(
            f"{len(values)} elements instead of one number; sum(...) or max(...) makes one of them"
        )
    return countable(values[0]) if values else None


def _values(result: _Result) -> list[float]:
    """Return the one value of a scalar, or the values of a vector."""
    try:
        if result.kind == "scalar":
            return [float(_POINT.decode(result.text)[1])]
        return [float(element.value[1]) for element in _NUMBERS.decode(result.text)]
    except json_answers.UNREADABLE as error:
        raise json_answers.wrong_shape(f"a {result.kind}", error) from error


def _result(answer: Answer, *kinds: str) -> _Result:
    """Return the whole result of a query, of one of these kinds."""
    body = json_answers.decoded(answer, _BODY, "Prometheus' JSON")
    if answer.status != OK or body.status != "success":
        words = _REPEATED_TEXT.sub("", body.error[:_WORDS_CHARACTERS])
        message = printable(f"HTTP {answer.status}, {body.kind}: {words}")
        raise errors.SourceRefusedError(message)
    given = body.warnings or []
    warnings = [warning for warning in given if not warning.startswith(_REMARK)]
    if warnings or body.is_partial:
        words = printable(str(warnings or "the answer is partial"))
        raise errors.SourceMalformedError(f"an incomplete answer: {words}")
    if body.data is None or body.data.kind not in kinds:
        wanted = " or ".join(kinds)
        raise errors.SourceMalformedError(f"an answer without a result of type {wanted}")
    return body.data
