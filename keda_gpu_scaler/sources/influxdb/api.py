"""InfluxDB's HTTP answers → points of fields, or an error with the server's own words.

Pure. A partial answer is an error: the pods that are missing from it would seem to be gone.
InfluxDB cuts an answer at its `max-row-limit`, and marks it.
"""

from collections.abc import Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from keda_gpu_scaler import errors
from keda_gpu_scaler.sources.query_client import countable, json_body
from keda_gpu_scaler.transport.client import OK, Answer, printable


class Series(NamedTuple):
    """One field under one set of tags."""

    measurement: str
    tags: Mapping[str, str]
    field: str
    points: list[tuple[float, float]]
    """Time in seconds and value, as the answer orders them; at least one."""


def series(answer: Answer) -> list[Series]:
    """Return every field that has a value, for each set of tags.

    Raises:
        errors.SourceRefusedError: the server answered with an error.
        errors.SourceMalformedError: the answer is partial or of the wrong shape.
    """
    tables = _tables(answer)
    try:
        return [one for table in tables for one in _fields(table) if one.points]
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
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
    _, value = max(found[0].points)
    return countable(value)


def clock(answer: Answer) -> float:
    """Return the server's time, at most a second behind; raises the same errors as `series`."""
    _tables(answer)
    try:
        return parsedate_to_datetime(answer.date).timestamp()
    except ValueError as error:
        raise errors.SourceMalformedError("an answer without its date") from error


def _fields(table: Mapping[str, Any]) -> Iterator[Series]:
    tags = {str(tag): text for tag, text in table.get("tags", {}).items() if text}
    time, *fields = table["columns"]
    if time != "time" or not all(isinstance(text, str) for text in tags.values()):
        raise ValueError(table)
    for column, field in enumerate(fields, start=1):
        yield Series(table["name"], tags, field, list(_points(table["values"], column)))


def _points(rows: Iterable[list[Any]], column: int) -> Iterator[tuple[float, float]]:
    for row in rows:
        time, value = row[0], row[column]
        if value is not None:
            yield _number(time) / 1000, _number(value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    return float(value)


def _tables(answer: Answer) -> list[Any]:
    """Return the tables of the one statement in the query."""
    content = json_body(answer, "InfluxDB's JSON")
    _require_success(answer, content)
    results = content.get("results")
    if not isinstance(results, list) or len(results) != 1 or not isinstance(results[0], dict):
        raise errors.SourceMalformedError("an answer without its one result")
    _require_success(answer, results[0])
    tables = results[0].get("series", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise errors.SourceMalformedError("a result whose series are no list")
    if any(part.get("partial") for part in (results[0], *tables)):
        raise errors.SourceMalformedError(
            "an incomplete answer: the server's max-row-limit is too small"
        )
    return tables


def _require_success(answer: Answer, part: Mapping[str, Any]) -> None:
    """Raise for an error; errors of a statement come with the status of success."""
    if answer.status != OK or "error" in part:
        words = part.get("error", "no reason given")
        raise errors.SourceRefusedError(printable(f"HTTP {answer.status}: {words}"))
