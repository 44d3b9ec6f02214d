"""InfluxDB's HTTP answers → points of fields, or an error with the server's own words.

Pure. What the server refuses is a SourceRefusedError, and any other answer than a whole and right
one is a SourceMalformedError: the pods that are missing from a partial one would seem to be gone.
InfluxDB cuts an answer at its `max-row-limit`, and marks it.
"""

from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import msgspec
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.observation import Points
from keda_gpu_scaler.sources import json_answers
from keda_gpu_scaler.sources.query_client import countable
from keda_gpu_scaler.transport.client import OK, Answer, printable


class Series(NamedTuple):
    """One field under one set of tags."""

    measurement: str
    tags: Mapping[str, str]
    field: str
    points: Sequence[tuple[float, float]]
    """Time in seconds and value, in ascending time; at least one."""


class _Table(msgspec.Struct):
    columns: list[str]
    values: msgspec.Raw
    name: str = ""
    tags: dict[str, str] = {}
    partial: bool = False


class _Statement(msgspec.Struct):
    series: list[_Table] = []
    error: str | None = None
    partial: bool = False


class _Body(msgspec.Struct):
    results: list[_Statement] = []
    error: str | None = None


_BODY, _ROWS = Decoder(_Body), Decoder(list[list[float | None]])


def series(answer: Answer) -> list[Series]:
    """Return every field that has a value, for each set of tags."""
    tables = _tables(answer)
    try:
        return [field for table in tables for field in _fields(table) if field.points]
    except (*json_answers.UNREADABLE, IndexError) as error:
        raise json_answers.wrong_shape("a series", error) from error


def number(answer: Answer) -> float | None:
    """Return the newest value of the one series; None: there is no series."""
    fields = series(answer)
    if not fields:
        return None
    if len(fields) > 1:
        raise errors.SourceMalformedError(
            f"{len(fields)} series instead of one number: select one field of one measurement, and "
            "group by no tag"
        )
    _, value = fields[0].points[-1]
    return countable(value)


def clock(answer: Answer) -> float:
    """Return the server's time, at most a second behind."""
    _tables(answer)
    try:
        return parsedate_to_datetime(answer.date).timestamp()
    except (ValueError, OverflowError) as error:
        raise errors.SourceMalformedError("an answer without its date") from error


def _fields(table: _Table) -> Iterator[Series]:
    if not table.name or table.columns[:1] != ["time"]:
        raise ValueError(f"a table {table.name!r} without a name, or without times first")
    tags = {tag: text for tag, text in table.tags.items() if text}
    rows = _ROWS.decode(table.values)
    for column, field in enumerate(table.columns[1:], start=1):
        points = list[tuple[float, float]]()
        for row in rows:
            time, value = row[0], row[column]
            if time is None:
                raise ValueError("a row without a time")
            if value is not None:
                points.append((time / 1000, value))
        yield Series(table.name, tags, field, Points.of(sorted(points)))


def _tables(answer: Answer) -> list[_Table]:
    """Return the tables of the one statement in the query."""
    body = json_answers.decoded(answer, _BODY, "InfluxDB's JSON")
    # Errors of a statement come with the status of success.
    reasons = [body.error, *(statement.error for statement in body.results)]
    words = next((reason for reason in reasons if reason is not None), None)
    if answer.status != OK or words is not None:
        words = "no reason given" if words is None else words
        raise errors.SourceRefusedError(printable(f"HTTP {answer.status}: {words}"))
    if len(body.results) != 1:
        raise errors.SourceMalformedError("an answer without its one result")
    (statement,) = body.results
    if statement.partial or any(table.partial for table in statement.series):
        raise errors.SourceMalformedError(
            "an incomplete answer: the server's max-row-limit is too small"
        )
    return statement.series
