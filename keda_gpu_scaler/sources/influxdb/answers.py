"""InfluxDB's HTTP answers → fields with their points → the observation of pods. Pure.

What the server refuses is a SourceRefusedError, and any other answer than a whole and right one is
a SourceMalformedError: the pods that are missing from a partial one would seem to be gone. InfluxDB
cuts an answer at its `max-row-limit`, and marks it.

It shows neither that a series has ended nor whether an exporter is up. A series counts as present
until its newest point is older than two of its own intervals. A series that is absent proves
nothing.
"""

import itertools
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import msgspec
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.influxql import Schema
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Points, Row
from keda_gpu_scaler.sources import evaluation_times
from keda_gpu_scaler.sources.query_client import UNREADABLE, countable, decoded, wrong_shape
from keda_gpu_scaler.sources.series import read_series, sample_ages
from keda_gpu_scaler.transport.client import OK, Answer, printable

_INTERVALS = 2
"""Points come a little late, and one lost point must not make a pod absent."""
_LONGEST_SECONDS = 120.0
_SLICE = "GPU_I_ID"


class Field(NamedTuple):
    """One field under one set of tags."""

    measurement: str
    tags: Mapping[str, str]
    name: str
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


def parse_fields(answer: Answer) -> list[Field]:
    """Return every field that has a value, for each set of tags."""
    tables = _tables(answer)
    try:
        return [field for table in tables for field in _fields(table) if field.points]
    except (*UNREADABLE, IndexError) as error:
        raise wrong_shape("a series", error) from error


def parse_number(answer: Answer) -> float | None:
    """Return the newest value of the one series; None: there is no series."""
    fields = parse_fields(answer)
    if not fields:
        return None
    if len(fields) > 1:
        raise errors.SourceMalformedError(
            f"{len(fields)} series instead of one number: select one field of one measurement, and "
            "group by no tag"
        )
    _, value = fields[0].points[-1]
    return countable(value)


def parse_clock(answer: Answer) -> float:
    """Return the server's time, at most a second behind."""
    _tables(answer)
    try:
        return parsedate_to_datetime(answer.date).timestamp()
    except (ValueError, OverflowError) as error:
        raise errors.SourceMalformedError("an answer without its date") from error


def _fields(table: _Table) -> Iterator[Field]:
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
        yield Field(table.name, tags, field, Points.of(sorted(points)))


def _tables(answer: Answer) -> list[_Table]:
    """Return the tables of the one statement in the query."""
    body = decoded(answer, _BODY, "InfluxDB's JSON")
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


def lookback_seconds(step: float) -> float:
    """Return how far back to look for a point at most."""
    return max(_LONGEST_SECONDS, _INTERVALS * step)


def rows(fields: Iterable[Field], schema: Schema, snapshot_query: SnapshotQuery) -> list[Row]:
    known = {
        metric.name: source.labels
        for source in reversed(
            profiles.metric_sources(snapshot_query.profile, snapshot_query.signal)
        )
        for metric in source.measure.metrics
    }
    named = ((schema.metric(field.measurement, field.name), field) for field in fields)
    return [
        Row({**schema.labels(field.tags, known[metric]), "__name__": metric}, field.points)
        for metric, field in named
        if metric in known
    ]


def samples(raw: list[Row], snapshot_query: SnapshotQuery, at: float, step: float) -> Observation:
    """Return the observation at each instant up to `at`, from points at any time."""
    times = evaluation_times.within(at, snapshot_query.span_seconds, step)
    placed = [Row(row.labels, at_instants(row.points, times, step)) for row in raw]
    ages = sample_ages([Row(row.labels, [(at, at - row.points[-1][0])]) for row in raw])
    return replace(_observation(placed, snapshot_query, times), sample_ages=ages)


def record(raw: list[Row], snapshot_query: SnapshotQuery, at: float, step: float) -> Observation:
    """Return the same for points that are dated at the beginning of the step they stand for."""
    times = evaluation_times.within(at, snapshot_query.span_seconds, step)
    ended = [Row(row.labels, [(time + step, value) for time, value in row.points]) for row in raw]
    return _observation(ended, snapshot_query, times)


def _observation(
    placed: list[Row], snapshot_query: SnapshotQuery, times: tuple[float, ...]
) -> Observation:
    series, refused = read_series(placed, snapshot_query.profile, snapshot_query.signal)
    return Observation(times, series, good_scrapes={}, refused_samples=refused)


def at_instants(
    points: Sequence[tuple[float, float]], times: Iterable[float], step: float
) -> list[tuple[float, float]]:
    point_times = [time for time, _ in points]
    gaps = (later - earlier for earlier, later in itertools.pairwise(point_times))
    interval = max(step, min(gaps, default=step))
    reach = min(_INTERVALS * interval, lookback_seconds(step))
    values = list[tuple[float, float]]()
    for time in times:
        newest = bisect_right(point_times, time) - 1
        if newest >= 0 and time - point_times[newest] < reach:
            values.append((time, points[newest][1]))
    return values


def reports(
    fields: Iterable[Field], schema: Schema, uuids: Collection[str], at: float, step: float
) -> GpuReports:
    busy: set[tuple[str, str]] = set()
    mapped: set[tuple[str, str]] = set()
    reported: set[str] = set()
    for field in fields:
        uuid, present = field.tags.get(schema.gpu_tag, ""), at_instants(field.points, (at,), step)
        if present and uuid in uuids:
            reported.add(uuid)
            part = uuid, field.tags.get(_SLICE, "")
            if field.tags.get(schema.pod_tag):
                mapped.add(part)
            elif present[0][1] > 0:
                busy.add(part)
    return GpuReports(frozenset(reported), frozenset(uuid for uuid, _ in busy - mapped))
