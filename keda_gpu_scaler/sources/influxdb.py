"""An InfluxDB 1.x as a source, queried in InfluxQL over HTTP.

Each step needs one query for all triggers. A few others are rare: the clock, the last hour of new
namespaces, and the GPUs of pods that just vanished.

Every query goes by GET to `/query`. GET does not prevent writing: InfluxDB 1.x only warns about it.
Writing is prevented because the scaler makes the texts itself, and checks a user's own query before
it is sent.

What the server refuses is a SourceRefusedError, and any other answer than a whole and right one is
a SourceMalformedError: the pods that are missing from a partial one would seem to be gone. InfluxDB
cuts an answer at its `max-row-limit`, and marks it.

It shows neither that a series has ended nor whether an exporter is up. A series counts as present
until its newest point is older than two of its own intervals. A series that is absent proves
nothing.
"""

import asyncio
import itertools
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from email.utils import parsedate_to_datetime
from functools import partial
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec.json import Decoder

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import EvidenceProvider, Source
from keda_gpu_scaler.query import influxql, profiles
from keda_gpu_scaler.query.influxql import Schema, Span
from keda_gpu_scaler.query.promql_texts import texts_about
from keda_gpu_scaler.settings import InfluxdbSettings
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Row
from keda_gpu_scaler.sources import evaluation_times, query_client
from keda_gpu_scaler.sources.evaluation_times import HISTORY_STEP_SECONDS, ServerClock
from keda_gpu_scaler.sources.query_client import NUMBER_BYTES, QueryClient
from keda_gpu_scaler.sources.series import Exporters, observed, sample_ages
from keda_gpu_scaler.spec.spec import Signal, SnapshotQuery
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import SETTLED_LAG_SECONDS
from keda_gpu_scaler.transport.http_client import OK, HttpAnswer, printable

T = TypeVar("T")
LONGEST_BYTES = 4096
"""Longer queries are sent in parts: they are part of a URL, and proxies limit URLs to 8 KiB."""
_INTERVALS = 2
"""Points come a little late, and one lost point must not make a pod absent."""
_LONGEST_SECONDS = 120.0


class Field(NamedTuple):
    """One field under one set of tags."""

    measurement: str
    name: str
    row: Row
    """With the tags as labels; at least one value."""


class InfluxdbSource:
    """Answers from the points that an InfluxDB has stored."""

    lag_seconds = 0.0
    """How late points are written is a setting."""

    def __init__(
        self,
        name: str,
        settings: InfluxdbSettings,
        observe: facts.Observer = facts.ignore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.step_seconds = round(settings.step_seconds, 3)
        self.settled_seconds = settings.delay_seconds + SETTLED_LAG_SECONDS
        self._settings, self._schema = settings, settings.layout
        self._exporters = Exporters(collection_seconds=settings.collection_seconds)
        self._client = QueryClient(name, settings, observe, clock)
        self._server_clock = ServerClock(clock)

    def ports(self, *evidence_providers: EvidenceProvider) -> Source:
        """Return what can be asked of it: InfluxDB knows nothing about pods but their tags."""
        return Source(self, evidence_providers, self, url=self._settings.url)

    async def close(self) -> None:
        await self._client.close()

    async def synchronize(self) -> None:
        """Learn the server's clock, unless it was asked recently.

        The clock is the date of an HTTP answer: InfluxQL has no query for the time, and SHOW
        DIAGNOSTICS, which shows it, is for administrators only.
        """
        if self._server_clock.is_synchronized:
            return
        text = influxql.policies(self._settings.database)
        seconds = await self._ask("clock", text, parse_clock, NUMBER_BYTES)
        self._server_clock.set(seconds)

    def now(self) -> float:
        return self._server_clock.now()

    def instant(self) -> float:
        """The newest multiple of the step with all points written by now."""
        return evaluation_times.floored(self.now() - self.settled_seconds, self.step_seconds)

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the points up to `at`, and the age of each pod's newest point.

        They overlap with the time that `history` covers, so that both give one continuous record.
        """
        wide, step = self._for_layout(snapshot_query), self.step_seconds
        reach = max(wide.span_seconds, 2 * HISTORY_STEP_SECONDS)
        wide = replace(wide, span_seconds=evaluation_times.whole_steps(reach, step))
        span = _span(at - wide.span_seconds - lookback_seconds(step), at)
        with self._client.turn():
            rows = await self._fetch_rows("snapshot", wide, span)
            return await asyncio.to_thread(samples, rows, wide, at, step, self._exporters)

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        hour, step = self._for_layout(snapshot_query), HISTORY_STEP_SECONDS
        hour = replace(hour, span_seconds=evaluation_times.HISTORY_SECONDS)
        last = evaluation_times.floored(at - self.step_seconds, step)
        span = _span(last - hour.span_seconds, last)
        # A point at an instant belongs to the step that begins at it.
        each_ms = evaluation_times.milliseconds(step)
        span = Span(span.since_ms - 1, span.until_ms - 1, each_ms)
        with self._client.turn():
            rows = await self._fetch_rows("history", hour, span)
            return await asyncio.to_thread(record, rows, hour, last, step, self._exporters)

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return the reports of these GPUs, if the database names GPUs by their unique UUID."""
        wanted = frozenset(uuid for uuid in uuids if uuid and influxql.is_speakable(uuid))
        schema, step = self._schema, self.step_seconds
        if not schema.knows_uuids or not wanted:
            return GpuReports()
        metrics, span = profiles.UTILIZATION_METRICS, _span(at - lookback_seconds(step), at)
        write = partial(influxql.points_text, schema, metrics, span, names_gpus=True)
        with self._client.turn():
            fields = await self._fetch_fields("gpus", wanted, write)
        return reports(fields, schema, wanted, at, step)

    async def number(self, text: str) -> float | None:
        """Return the newest value that a SELECT about one series finds; None: it finds nothing.

        A query that does more than read is not sent.
        """
        try:
            select = influxql.selection(text)
        except ValueError as error:
            raise errors.SourceRefusedError(f"not asked: expected {error}") from error
        async with self._client.number_turns:
            return await self._ask("demand", select, parse_number, NUMBER_BYTES)

    def _for_layout(self, snapshot_query: SnapshotQuery) -> SnapshotQuery:
        """Return the query for this layout: without metric names there is utilization only."""
        if self._schema.names_metrics:
            return snapshot_query
        if snapshot_query.signal is not Signal.UTILIZATION:
            raise errors.SourceRefusedError(
                f"it has no {snapshot_query.signal}: where neither measurement nor field is "
                f"{influxql.METRIC}, the numbers are utilization"
            )
        return replace(snapshot_query, profile=profiles.AUTO)

    async def _fetch_rows(self, kind: str, snapshot_query: SnapshotQuery, span: Span) -> list[Row]:
        metrics = profiles.metric_names(snapshot_query.profile, snapshot_query.signal)
        write = partial(influxql.points_text, self._schema, metrics, span)
        fields = await self._fetch_fields(kind, snapshot_query.namespaces, write)
        return await asyncio.to_thread(rows_of, fields, self._schema, snapshot_query)

    async def _fetch_fields(
        self, kind: str, names: frozenset[str], write: Callable[[Collection[str]], str]
    ) -> list[Field]:
        fields: list[Field] = []
        for text in texts_about(names, write, LONGEST_BYTES):
            fields += await self._ask(kind, text, parse_fields)
        return fields

    async def _ask(
        self, kind: str, text: str, parse: Callable[[HttpAnswer], T], limit_bytes: int | None = None
    ) -> T:
        form = {"db": self._settings.database, "epoch": "ms", "q": text}
        if self._settings.retention_policy is not None:
            form["rp"] = self._settings.retention_policy
        url = f"{self._settings.url}/query?{urlencode(form)}"
        with self._client.reported(kind):
            answer = await self._client.fetch(url, limit_bytes=limit_bytes)
            return await asyncio.to_thread(parse, answer)


def _span(since: float, until: float) -> Span:
    return Span(evaluation_times.milliseconds(since), evaluation_times.milliseconds(until))


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


def parse_fields(answer: HttpAnswer) -> list[Field]:
    """Return every field that has a value, for each set of tags."""
    tables = _tables(answer)
    try:
        return [field for table in tables for field in _fields(table) if field.row.times]
    except (*query_client.UNREADABLE, IndexError) as error:
        raise query_client.wrong_shape("a series", error) from error


def parse_number(answer: HttpAnswer) -> float | None:
    """Return the newest value of the one series; None: there is no series."""
    fields = parse_fields(answer)
    if not fields:
        return None
    if len(fields) > 1:
        raise errors.SourceMalformedError(
            f"{len(fields)} series instead of one number: select one field of one measurement, and "
            "group by no tag"
        )
    return query_client.countable(fields[0].row.values[-1])


def parse_clock(answer: HttpAnswer) -> float:
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
            time_ms, value = row[0], row[column]
            if time_ms is None:
                raise ValueError("a row without a time")
            if value is not None:
                points.append((time_ms / 1000, value))
        yield Field(table.name, field, Row.of(tags, sorted(points)))


def _tables(answer: HttpAnswer) -> list[_Table]:
    """Return the tables of the one statement in the query."""
    body = query_client.decoded(answer, _BODY, "InfluxDB's JSON")
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


def rows_of(fields: Iterable[Field], schema: Schema, snapshot_query: SnapshotQuery) -> list[Row]:
    known = {
        metric.name: source.labels
        for source in reversed(
            profiles.metric_sources(snapshot_query.profile, snapshot_query.signal)
        )
        for metric in source.measure.metrics
    }
    named = ((schema.metric(field.measurement, field.name), field) for field in fields)
    return [
        field.row._replace(
            labels={**schema.labels(field.row.labels, known[metric]), "__name__": metric}
        )
        for metric, field in named
        if metric in known
    ]


def samples(
    rows: list[Row],
    snapshot_query: SnapshotQuery,
    at: float,
    step: float,
    exporters: Exporters,
) -> Observation:
    """Return the observation at each instant up to `at`, from points at any time."""
    times = evaluation_times.within(at, snapshot_query.span_seconds, step)
    placed = [at_instants(row, times, step) for row in rows]
    ages = sample_ages([Row.of(row.labels, [(at, at - row.times[-1])]) for row in rows])
    return replace(observed(placed, snapshot_query, times, exporters), sample_ages=ages)


def record(
    rows: list[Row],
    snapshot_query: SnapshotQuery,
    at: float,
    step: float,
    exporters: Exporters,
) -> Observation:
    """Return the same for points that are dated at the beginning of the step they stand for."""
    times = evaluation_times.within(at, snapshot_query.span_seconds, step)
    ended = [row._replace(times=tuple(time + step for time in row.times)) for row in rows]
    return observed(ended, snapshot_query, times, exporters)


def at_instants(row: Row, times: Iterable[float], step: float) -> Row:
    gaps = (later - earlier for earlier, later in itertools.pairwise(row.times))
    interval = max(step, min(gaps, default=step))
    reach = min(_INTERVALS * interval, lookback_seconds(step))
    placed = list[tuple[float, float]]()
    for instant in times:
        newest = bisect_right(row.times, instant) - 1
        if newest >= 0 and instant - row.times[newest] < reach:
            placed.append((instant, row.values[newest]))
    return Row.of(row.labels, placed)


def reports(
    fields: Iterable[Field], schema: Schema, uuids: Collection[str], at: float, step: float
) -> GpuReports:
    busy: set[tuple[str, str]] = set()
    mapped: set[tuple[str, str]] = set()
    reported: set[str] = set()
    for field in fields:
        tags, values = field.row.labels, at_instants(field.row, (at,), step).values
        uuid = tags.get(schema.gpu_tag, "")
        if values and uuid in uuids:
            reported.add(uuid)
            part = uuid, tags.get("GPU_I_ID", "")
            if tags.get(schema.pod_tag):
                mapped.add(part)
            elif values[0] > 0:
                busy.add(part)
    return GpuReports(frozenset(reported), frozenset(uuid for uuid, _ in busy - mapped))
