"""An InfluxDB 1.x as a source, queried in InfluxQL over HTTP.

Each step needs one query for all triggers. A few others are rare: the clock, the last hour of new
namespaces, and the GPUs of pods that just vanished.

Every query goes by GET to `/query`. GET does not prevent writing: InfluxDB 1.x only warns about it.
Writing is prevented because the scaler makes the texts itself, and checks a user's own query before
it is sent.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import TypeVar
from urllib.parse import urlencode

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import SETTLED_LAG_SECONDS, EvidenceProvider, Source
from keda_gpu_scaler.query import influxql, profiles
from keda_gpu_scaler.query.influxql import Span
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery, texts_about
from keda_gpu_scaler.settings import InfluxdbSettings
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Row
from keda_gpu_scaler.sources import evaluation_times
from keda_gpu_scaler.sources.evaluation_times import HISTORY_STEP_SECONDS, ServerClock
from keda_gpu_scaler.sources.influxdb import answers
from keda_gpu_scaler.sources.influxdb.answers import Field
from keda_gpu_scaler.sources.query_client import NUMBER_BYTES, QueryClient, create_client
from keda_gpu_scaler.spec.spec import Signal
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.transport.client import Answer

T = TypeVar("T")
LONGEST_BYTES = 4096
"""Longer queries are sent in parts: they are part of a URL, and proxies limit URLs to 8 KiB."""


class InfluxdbSource:
    """Answers from the points that an InfluxDB has stored."""

    def __init__(
        self,
        name: str,
        settings: InfluxdbSettings,
        observe: facts.Observer = facts.ignore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.step_seconds = round(settings.step_seconds, 3)
        self._settings, self._schema = settings, settings.layout
        self._client = QueryClient(name, create_client(settings), observe, clock)
        self._server_clock = ServerClock(clock)

    def ports(self, *evidence_providers: EvidenceProvider) -> Source:
        """Return what can be asked of it: InfluxDB knows nothing about pods but their tags."""
        return Source(self, evidence_providers, self)

    async def close(self) -> None:
        await self._client.http.close()

    async def synchronize(self) -> None:
        """Learn the server's clock, unless it was asked recently.

        The clock is the date of an HTTP answer: InfluxQL has no query for the time, and SHOW
        DIAGNOSTICS, which shows it, is for administrators only.
        """
        if self._server_clock.is_synchronized:
            return
        text = influxql.policies(self._settings.database)
        seconds = await self._ask("clock", text, answers.parse_clock, NUMBER_BYTES)
        self._server_clock.set(seconds)

    @property
    def lag_seconds(self) -> float:
        """None: how late points are written is a setting."""
        return 0.0

    def now(self) -> float:
        return self._server_clock.now()

    def instant(self) -> float:
        """The newest multiple of the step with all points written by now."""
        late = self._settings.delay_seconds + SETTLED_LAG_SECONDS
        return evaluation_times.floored(self.now() - late, self.step_seconds)

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the points up to `at`, and the age of each pod's newest point.

        They overlap with the time that `history` covers, so that both give one continuous record.
        """
        wide, step = self._for_layout(snapshot_query), self.step_seconds
        reach = max(wide.span_seconds, 2 * HISTORY_STEP_SECONDS)
        wide = replace(wide, span_seconds=evaluation_times.whole_steps(reach, step))
        span = _span(at - wide.span_seconds - answers.lookback_seconds(step), at)
        read = partial(answers.samples, snapshot_query=wide, at=at, step=step)
        return await self._fetch_observation("snapshot", wide, span, read)

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        hour, step = self._for_layout(snapshot_query), HISTORY_STEP_SECONDS
        hour = replace(hour, span_seconds=evaluation_times.HISTORY_SECONDS)
        last = evaluation_times.floored(at - self.step_seconds, step)
        span = _span(last - hour.span_seconds, last)
        # A point at an instant belongs to the step that begins at it.
        each_ms = evaluation_times.milliseconds(step)
        span = Span(span.since_ms - 1, span.until_ms - 1, each_ms)
        read = partial(answers.record, snapshot_query=hour, at=last, step=step)
        return await self._fetch_observation("history", hour, span, read)

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return the reports of these GPUs, if the database names GPUs by their unique UUID."""
        wanted = frozenset(uuid for uuid in uuids if uuid and influxql.is_speakable(uuid))
        schema, step = self._schema, self.step_seconds
        if not schema.knows_uuids or not wanted:
            return GpuReports()
        metrics, span = profiles.UTILIZATION_METRICS, _span(at - answers.lookback_seconds(step), at)
        write = partial(influxql.points_text, schema, metrics, span, names_gpus=True)
        with self._client.http.turn():
            fields = await self._fetch_fields("gpus", wanted, write)
        return answers.reports(fields, schema, wanted, at, step)

    async def number(self, text: str) -> float | None:
        """Return the newest value that a SELECT about one series finds; None: it finds nothing.

        Raises:
            errors.SourceError: there is no whole answer, or it has more than one series; or the
                query is not sent, because it does more than read.
        """
        try:
            select = influxql.selection(text)
        except ValueError as error:
            raise errors.SourceRefusedError(f"not asked: expected {error}") from error
        async with self._client.number_turns:
            return await self._ask("demand", select, answers.parse_number, NUMBER_BYTES)

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

    async def _fetch_observation(
        self,
        kind: str,
        snapshot_query: SnapshotQuery,
        span: Span,
        read: Callable[[list[Row]], Observation],
    ) -> Observation:
        metrics = profiles.metric_names(snapshot_query.profile, snapshot_query.signal)
        write = partial(influxql.points_text, self._schema, metrics, span)
        with self._client.http.turn():
            fields = await self._fetch_fields(kind, snapshot_query.namespaces, write)
            rows = await asyncio.to_thread(answers.rows, fields, self._schema, snapshot_query)
            observation = await asyncio.to_thread(read, rows)
        return replace(observation, collection_seconds=self._settings.collection_seconds)

    async def _fetch_fields(
        self, kind: str, names: frozenset[str], write: Callable[[Collection[str]], str]
    ) -> list[Field]:
        fields: list[Field] = []
        for text in texts_about(names, write, LONGEST_BYTES):
            fields += await self._ask(kind, text, answers.parse_fields)
        return fields

    async def _ask(
        self, kind: str, text: str, parse: Callable[[Answer], T], limit_bytes: int | None = None
    ) -> T:
        form = {"db": self._settings.database, "epoch": "ms", "q": text}
        if self._settings.retention_policy is not None:
            form["rp"] = self._settings.retention_policy
        url = f"{self._settings.url}/query?{urlencode(form)}"
        with self._client.reported(kind):
            answer = await self._client.http.fetch(url, limit_bytes=limit_bytes)
            return await asyncio.to_thread(parse, answer)


def _span(since: float, until: float) -> Span:
    return Span(evaluation_times.milliseconds(since), evaluation_times.milliseconds(until))
