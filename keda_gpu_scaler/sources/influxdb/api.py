"""InfluxDB's HTTP answers → points of fields, or an error with the server's own words.

Pure. A partial answer is an error: the pods that are missing from it would seem to be gone.
InfluxDB cuts an answer at its `max-row-limit`, and marks it.
"""

from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import msgspec
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.sources import json_answers
from keda_gpu_scaler.sources.json_answers import LABEL_BYTES, NOTHING, POINT_BYTES, Room, Text
from keda_gpu_scaler.sources.query_client import countable
from keda_gpu_scaler.transport.client import OK, Answer, printable


class Series(NamedTuple):
    """One field under one set of tags."""

    measurement: str
    tags: Mapping[str, str]
    field: str
    points: Sequence[tuple[float, float]]
    """Time in seconds and value, in ascending time; at least one."""


class _Body(msgspec.Struct):
    results: Text = NOTHING
    error: Text = NOTHING


class _Statement(msgspec.Struct):
    series: Text = msgspec.Raw(b"[]")
    error: Text = NOTHING
    partial: Text = NOTHING


class _Table(msgspec.Struct):
    name: Text = NOTHING
    tags: Text = msgspec.Raw(b"{}")
    columns: Text = NOTHING
    values: Text = NOTHING
    partial: Text = NOTHING


_BODY, _STATEMENTS = Decoder(_Body), Decoder(list[_Statement])
_TABLES, _ROWS = Decoder(list[_Table]), Decoder(list[list[float | None]])


def series(answer: Answer, room: Room | None = None) -> list[Series]:
    """Return every field that has a value, for each set of tags.

    Args:
        answer: the server's answer.
        room: for the points of all parts of a query; None: there is one part.

    Raises:
        errors.SourceRefusedError: the server answered with an error.
        errors.SourceMalformedError: the answer is partial, of the wrong shape, or takes more memory
            than it may.
    """
    room = room or Room()
    room.open(answer)
    tables = _tables(answer)
    try:
        return [one for table in tables for one in _fields(table, room) if one.points]
    except (ValueError, IndexError) as error:
        raise errors.SourceMalformedError("a series of the wrong shape") from error


def number(answer: Answer) -> float | None:
    """Return the newest value of the one series; None: there is no series.

    Raises:
        errors.SourceRefusedError: the server answered with an error.
        errors.SourceMalformedError: the answer is partial, of the wrong shape, or not one number
            that KEDA can count with.
    """
    found = series(answer)
    if not found:
        return None
    if len(found) > 1:
        raise errors.SourceMalformedError(
            f"{len(found)} series instead of one number: select one field of one measurement, and "
            "group by no tag"
        )
    _, value = found[0].points[-1]
    return countable(value)


def clock(answer: Answer) -> float:
    """Return the server's time, at most a second behind; raises the same errors as `number`."""
    _tables(answer)
    try:
        return parsedate_to_datetime(answer.date).timestamp()
    except (ValueError, OverflowError) as error:
        raise errors.SourceMalformedError("an answer without its date") from error


def _fields(table: _Table, room: Room) -> Iterator[Series]:
    name = json_answers.part(table.name, json_answers.STRING, LABEL_BYTES)
    tags = {tag: text for tag, text in room.labels([table.tags])[0].items() if text}
    time, *fields = json_answers.part(table.columns, json_answers.STRINGS, LABEL_BYTES)
    if time != "time":
        raise ValueError(f"{time!r} where the time should be")
    rows = json_answers.part(table.values, _ROWS, POINT_BYTES)
    for column, field in enumerate(fields, start=1):
        yield Series(name, tags, field, room.points(sorted(_points(rows, column))))


def _points(rows: Sequence[Sequence[float | None]], column: int) -> Iterator[tuple[float, float]]:
    for row in rows:
        time, value = row[0], row[column]
        if time is None:
            raise ValueError("a row without a time")
        if value is not None:
            yield time / 1000, value


def _tables(answer: Answer) -> list[_Table]:
    """Return the tables of the one statement in the query."""
    body = json_answers.body(answer, _BODY, "InfluxDB's JSON")
    _require_success(answer, body.error)
    try:
        (statement,) = json_answers.decoded(body.results, _STATEMENTS)
    except ValueError as error:
        raise errors.SourceMalformedError("an answer without its one result") from error
    _require_success(answer, statement.error)
    try:
        tables = json_answers.decoded(statement.series, _TABLES)
    except ValueError as error:
        raise errors.SourceMalformedError("a result whose series are no list") from error
    partial = {bytes(one) for one in (statement.partial, *(table.partial for table in tables))}
    if not partial <= {b"null", b"false"}:
        raise errors.SourceMalformedError(
            "an incomplete answer: the server's max-row-limit is too small"
        )
    return tables


def _require_success(answer: Answer, error: Text) -> None:
    """Raise for an error; errors of a statement come with the status of success."""
    if answer.status != OK or error != NOTHING:
        words = "no reason given" if error == NOTHING else json_answers.words(error)
        raise errors.SourceRefusedError(printable(f"HTTP {answer.status}: {words}"))
