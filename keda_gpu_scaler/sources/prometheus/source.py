"""A Prometheus, or another server with its HTTP API, as a source.

Each step needs one snapshot query, one for the age of stale samples and one about
kube-state-metrics, for all triggers. A few others are rare: the clock, the exporters, the last hour
of new namespaces, and the GPUs of pods that just vanished.
"""

import asyncio
import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import SETTLED_LAG_SECONDS, EvidenceProvider, Source
from keda_gpu_scaler.query import profiles
from keda_gpu_scaler.query.promql_texts import (
    ALIVE_LABEL,
    EXPORTER_LABEL,
    EXPORTERS,
    NEWEST_AGE,
    ON_TIME_LABEL,
    STATE_LABEL,
    GpusPromql,
    SnapshotPromql,
    ages_promql,
    snapshot_promql,
)
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation
from keda_gpu_scaler.sources import evaluation_times
from keda_gpu_scaler.sources.evaluation_times import ServerClock
from keda_gpu_scaler.sources.lag import Lag
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.kube_state_metrics import KubeStateMetrics
from keda_gpu_scaler.sources.prometheus.own_queries import OwnQueries
from keda_gpu_scaler.sources.query_client import create_client
from keda_gpu_scaler.sources.series import read_observation, sample_ages
from keda_gpu_scaler.telemetry import facts

GPUS_PER_QUERY = 500
QUERIES_OF_A_STEP = 3
"""The first one can show that there is another exporter, and the second one its scrape job. Jobs
that are new at each query do not make queries without end."""
UNANSWERED_SECONDS = 300.0
"""A server that does not say how late it is, is asked again after this time."""
DETECTED_SECONDS = 120.0
"""New exporters come with node pools; it can take this long until a new one is found."""


class ExporterDiscovery:
    """The exporters found in one source beside dcgm-exporter, whose series are always queried.

    To query every known exporter would take many times longer texts. One that was found once is
    always queried: an empty answer costs next to nothing.
    """

    def __init__(
        self,
        source: str,
        client: PrometheusClient,
        observe: facts.Observer,
        clock: Callable[[], float],
    ) -> None:
        self._source, self._client, self._observe, self._clock = source, client, observe, clock
        self._found: frozenset[str] = frozenset()
        self._asked_at = float("-inf")
        self._asking = asyncio.Lock()

    def found(self) -> frozenset[str]:
        """Return the exporters that were found beside dcgm-exporter."""
        return self._found

    def widened(self, snapshot_query: SnapshotQuery) -> SnapshotQuery:
        """Return the query with the exporters that `auto` stands for."""
        return (
            replace(snapshot_query, found=self._found)
            if snapshot_query.profile == profiles.AUTO
            else snapshot_query
        )

    async def refresh(self, snapshot_query: SnapshotQuery, at: float) -> None:
        """Look for exporters, unless that was done recently or `snapshot_query` needs none.

        If the server refuses that query, the known exporters stay in use.
        """
        async with self._asking:
            is_due = self._clock() - self._asked_at >= DETECTED_SECONDS
            if not is_due or snapshot_query.profile != profiles.AUTO:
                return
            self._asked_at = self._clock()
            with contextlib.suppress(errors.SourceError):
                rows = await self._client.vector("exporters", EXPORTERS, at)
                shown = {row.labels.get(EXPORTER_LABEL, "") for row in rows}
                new = shown.intersection(profiles.DETECTED) - self._found
                if new:
                    self._found |= new
                    self._observe(facts.ExportersFound(self._source, tuple(sorted(new))))


class PrometheusSource:
    """Answers from the samples that a Prometheus has stored."""

    def __init__(  # noqa: PLR0913 - what it asks, and by what
        self,
        name: str,
        settings: PrometheusSettings,
        observe: facts.Observer = facts.ignore,
        clock: Callable[[], float] = time.monotonic,
        client: PrometheusClient | None = None,
        *,
        claims_without_gpus: frozenset[str] = frozenset(),
        at: float | None = None,
    ) -> None:
        """Prepare the client without connecting.

        `claims_without_gpus` are ResourceClaims and their templates that are for no GPU; `at` is
        the time that is the present for every query; None: the server's own.
        """
        self.step_seconds = round(settings.step_seconds, 3)
        self._name, self._settings, self._observe, self._clock = name, settings, observe, clock
        self._claims_without_gpus, self._at = claims_without_gpus, at
        self._client = client or PrometheusClient(
            name, settings, create_client(settings), observe, clock
        )
        self._jobs: frozenset[str] = frozenset()
        self.kube_state_metrics = KubeStateMetrics(self._client, clock, claims_without_gpus)
        self._own = OwnQueries(self._client, settings.collection_seconds)
        self._server_clock, self._lag = ServerClock(clock), Lag(self.step_seconds)
        self._is_late, self._lag_due_at = False, float("-inf")
        self._discovery = ExporterDiscovery(name, self._client, observe, clock)

    def ports(self, *stronger: EvidenceProvider) -> Source:
        """Return what can be asked of it; kube-state-metrics comes after `stronger` evidence."""
        return Source(
            self,
            (*stronger, self.kube_state_metrics),
            self,
            self._discovery.found,
            functools.partial(self._ports_of_namespace, stronger)
            if self._settings.is_per_namespace
            else None,
        )

    def _ports_of_namespace(self, stronger: Iterable[EvidenceProvider], namespace: str) -> Source:
        """Return the source for queries about this namespace; it shares the connections."""
        source = PrometheusSource(
            self._name,
            self._settings,
            self._observe,
            self._clock,
            self._client.within(namespace),
            claims_without_gpus=self._claims_without_gpus,
            at=self._at,
        )
        return source.ports(*stronger)

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def synchronize(self) -> None:
        """Learn the server's clock, unless it was asked recently, and whether its lag has changed.

        Without a time in the query, VictoriaMetrics answers for 30 s ago (its
        `-search.latencyOffset`). For any later time it would repeat its data of that instant. So
        the answer here is its clock, and no query is about a later instant.
        """
        if self._at is None and not self._server_clock.is_synchronized:
            self._server_clock.set(await self._client.time())
        now = self._present()
        if self._is_late and now >= self._lag_due_at:
            self._lag_due_at = now + UNANSWERED_SECONDS
            with contextlib.suppress(errors.SourceError):  # then the lag stays what it was
                age = await self._client.number("lag", NEWEST_AGE, now)
                self._lag_due_at = now + self.step_seconds
                if age is not None:
                    self._note_age(now, age)

    @property
    def lag_seconds(self) -> float:
        """How far its clock is behind the server's, because all samples arrive so late."""
        return self._lag.seconds

    def now(self) -> float:
        """The time on the server's clock; where all samples arrive late, so much earlier."""
        return self._present() - self._lag.seconds

    def _present(self) -> float:
        return self._server_clock.now() if self._at is None else self._at

    def instant(self) -> float:
        """The newest multiple of the step that is two seconds past."""
        return evaluation_times.floored(self.now() - SETTLED_LAG_SECONDS, self.step_seconds)

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the samples up to `at`, and the ages of the stale ones among them.

        They overlap with the time that `history` covers, so that both give one continuous record.
        Queries about one namespace do not show the health of exporters: absence is then unknown.
        """
        reach = max(snapshot_query.span_seconds, 2 * evaluation_times.HISTORY_STEP_SECONDS)
        wide = replace(
            snapshot_query, span_seconds=evaluation_times.whole_steps(reach, self.step_seconds)
        )
        if snapshot_query.query is not None:
            async with self._client.own_turn(snapshot_query.namespaces):
                return await self._own.fetch(snapshot_query.query, wide, at, self.step_seconds)
        with self._client.turn():
            observation = await self._fetch_observation("snapshot", wide, at, self.step_seconds)
            ages = ages_promql(self._discovery.widened(snapshot_query))
            rows = await self._client.vector("age", ages, at)
        is_alive = any(ALIVE_LABEL in row.labels for row in rows)
        is_on_time = any(ON_TIME_LABEL in row.labels for row in rows)
        self._is_late = bool(self._lag.seconds) or (self._client.shows_targets and not is_on_time)
        if not self._is_late:
            self._note_age(at, 0.0)
        return replace(
            observation,
            sample_ages=sample_ages(rows),
            absence_known=is_alive and self._client.shows_targets,
        )

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the pods that reported in the hour before `at`, at a coarse step."""
        hour = replace(snapshot_query, span_seconds=evaluation_times.HISTORY_SECONDS)
        step = evaluation_times.HISTORY_STEP_SECONDS
        before = evaluation_times.floored(at - self.step_seconds, step)
        if (own := snapshot_query.query) is not None:
            async with self._client.own_turn(snapshot_query.namespaces):
                return await self._own.fetch_elements("own-history", own, hour, before, step)
        with self._client.turn():
            return await self._fetch_observation("history", hour, before, step)

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return the reports of these GPUs; each query is about a few hundred."""
        by_state: dict[str, set[str]] = {"reported": set(), "busy": set()}
        ordered = iter(sorted(filter(None, uuids)))  # an element need not name its GPU
        while batch := list(itertools.islice(ordered, GPUS_PER_QUERY)):
            with self._client.turn():
                rows = await self._client.vector("gpus", GpusPromql(frozenset(batch)), at)
            for row in rows:
                uuid = row.labels.get("UUID") or row.labels.get("uuid") or ""
                by_state.setdefault(row.labels.get(STATE_LABEL, ""), set()).add(uuid)
        return GpuReports(frozenset(by_state["reported"]), frozenset(by_state["busy"]))

    async def number(self, text: str) -> float | None:
        """Return the one number that a PromQL expression gives at the server's present time.

        VictoriaMetrics answers for 30 s ago, as for every query without a time.
        """
        async with self._client.number_turns:
            return await self._client.number("demand", text, self._at)

    async def _fetch_observation(
        self, kind: str, snapshot_query: SnapshotQuery, at: float, step: float
    ) -> Observation:
        """Return the observation; query again if there is a new exporter or a new scrape job."""
        for _ in range(QUERIES_OF_A_STEP):
            promql = self._promql(snapshot_query, step)
            rows = await self._client.matrix(kind, promql, at)
            await self._discovery.refresh(snapshot_query, at)
            self._jobs |= {row.labels["job"] for row in rows if row.labels.get("job")}
            if self._promql(snapshot_query, step) == promql:
                break
        observation = await asyncio.to_thread(read_observation, rows, snapshot_query, at, step)
        return replace(observation, collection_seconds=self._settings.collection_seconds)

    def _promql(self, snapshot_query: SnapshotQuery, step: float) -> SnapshotPromql:
        """Return the query for the exporters and the scrape jobs that are known now."""
        return snapshot_promql(self._discovery.widened(snapshot_query), self._jobs, step)

    def _note_age(self, at: float, age_seconds: float) -> None:
        """Note the age of the newest sample, and state a lag that has changed."""
        before = self._lag.seconds
        self._lag.observe(at, age_seconds)
        if self._lag.seconds != before:
            self._observe(facts.LagChanged(self._name, self._lag.seconds, before))
