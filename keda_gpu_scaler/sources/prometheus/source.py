"""A Prometheus, or another server with its HTTP API, as a source.

Each step needs one snapshot query, one for the age of stale samples and one about
kube-state-metrics, for all triggers. A few others are rare: the clock, the exporters, how much each
of several scrape jobs shows, the last hour of new namespaces, the GPUs of pods that have just
vanished, and what there is where nothing is read.
"""

import asyncio
import contextlib
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import EvidenceProvider, Source
from keda_gpu_scaler.evidence.kube_state_metrics import read_evidence
from keda_gpu_scaler.query import kube_state_texts, profiles, promql_texts
from keda_gpu_scaler.query.profiles.model import MetricSource
from keda_gpu_scaler.record.causes import Look
from keda_gpu_scaler.snapshot.attribution import Breadth
from keda_gpu_scaler.snapshot.evidence import Evidence
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Target, scrape_times
from keda_gpu_scaler.sources import evaluation_times, series
from keda_gpu_scaler.sources.evaluation_times import HISTORY_STEP_SECONDS, Lag, ServerClock
from keda_gpu_scaler.sources.prometheus.client import (
    PrometheusClient,
    parse_matrix,
    parse_vector,
    several,
)
from keda_gpu_scaler.spec.spec import OwnQuery, SnapshotQuery, is_countable
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import REMEMBERED_SECONDS, SETTLED_LAG_SECONDS
from keda_gpu_scaler.transport.http_client import printable

GPUS_PER_QUERY = 500
QUERIES_OF_A_STEP = 3
"""The first one can show that there is another exporter, and the second one its scrape job. Jobs
that are new at each query do not make queries without end."""
JOBS_BYTES = 1_300
"""Twice in the snapshot query, of which the rest takes up to 13 KB of VictoriaMetrics' 16 KiB."""
MOST_JOBS = 50
LONGEST_JOB_CHARACTERS = 100
DETECTED_SECONDS = 120.0
"""New exporters come with node pools; it can take this long until a new one is found."""
LABEL_CHARACTERS = 100
"""Of a text that is only shown."""
OWN_BYTES = 2**20
"""The limit of an answer to a user's own query: 1,500 GPUs with the usual window. There
can be hundreds of such queries, and each is about one workload."""
OWN_JOBS = 20
"""The health of at most so many scrape jobs is queried; with more jobs it stays unknown."""
EVIDENCE_JOBS_BYTES = 1_500
"""Six times in the query, of which the rest takes up to 6 KB of VictoriaMetrics' 16 KiB."""
FOUND_SECONDS = 300.0
"""A new job that shows kube-state-metrics is rare."""


class ScrapeJobs:
    """The scrape jobs that rows have named lately, to be named in queries; the widest come first.

    Their names are others' texts: few are kept, and short ones. A tenant can give each of its rows
    a job of its own, and a job stands in every query of the source.
    """

    def __init__(self, client: PrometheusClient, most_bytes: int) -> None:
        """Keep jobs that take at most so many bytes in a query, each time that it names them."""
        self._client, self._most_bytes = client, most_bytes
        self._known: dict[str, tuple[float, float]] = {}
        """The most namespaces that each job has shown, and when a row last named it."""
        self.names = frozenset[str]()

    def note(self, namespaces: Mapping[str, float]) -> None:
        """Note jobs with the number of namespaces that each shows; forget old ones."""
        now = self._client.clock()
        lately = {
            job: (most, named_at)
            for job, (most, named_at) in self._known.items()
            if now - named_at < REMEMBERED_SECONDS
        }
        for job, count in namespaces.items():
            lately[job] = max(count, lately.get(job, (count, now))[0]), now
        self._known, left_bytes = {}, self._most_bytes
        for job in sorted(lately, key=lambda job: (-lately[job][0], job not in self.names, job)):
            size = len(promql_texts.alternatives([job]).encode())
            fits = len(job) <= LONGEST_JOB_CHARACTERS and size <= left_bytes
            if fits and len(self._known) < MOST_JOBS:
                self._known[job] = lately[job]
                left_bytes -= size
        self.names = frozenset(self._known)
        if left_out := lately.keys() - self.names:
            first = printable(min(left_out), LONGEST_JOB_CHARACTERS)
            self._client.observe(facts.JobsLeftOut(self._client.name, len(left_out), first))


class PrometheusSource:
    """Answers from the samples that a Prometheus has stored."""

    settled_seconds = SETTLED_LAG_SECONDS

    def __init__(
        self,
        client: PrometheusClient,
        *,
        without_gpus: frozenset[str] = frozenset(),
        at: float | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Ask by this client, which `close` closes.

        `without_gpus` is what pods may ask for and is no GPU; `at` is the time that is the present
        for every query; None: the server's own.
        """
        self.step_seconds = round(client.settings.step_seconds, 3)
        self._client, self._without_gpus, self._at = client, without_gpus, at
        self.kube_state_metrics = KubeStateMetrics(client, without_gpus)
        self._server_clock = ServerClock(client.clock, wall_clock)
        self._lag = Lag(self.step_seconds)
        self._is_late, self._lag_due_at = False, float("-inf")
        self._jobs = ScrapeJobs(client, JOBS_BYTES)
        """Those of the exporters."""
        self._exporters: frozenset[str] = frozenset()
        """Those found beside dcgm-exporter, whose series are always queried.

        To query every known one would take many times longer texts. One that was found once is
        always queried: an empty answer costs next to nothing.
        """
        self._breadths_asked: dict[frozenset[str], tuple[float, Mapping[str, Breadth]]] = {}
        """When it was asked how much each job shows of some metrics, and the answer."""
        self._believed: dict[frozenset[str], frozenset[str]] = {}
        """The jobs that counted for some metrics last."""
        self._exporters_asked_at = float("-inf")
        self._exporters_asking = asyncio.Lock()

    def ports(self, *stronger: EvidenceProvider) -> Source:
        """Return what can be asked of it; kube-state-metrics comes after `stronger` evidence."""

        def of_namespace(namespace: str) -> Source:
            client = self._client.within(namespace)
            source = PrometheusSource(client, without_gpus=self._without_gpus, at=self._at)
            return source.ports(*stronger)

        return Source(
            self,
            (*stronger, self.kube_state_metrics),
            self,
            lambda: self._exporters,
            of_namespace if self._client.settings.is_per_namespace else None,
            url=self._client.settings.url,
            accelerators=self.look,
        )

    async def close(self) -> None:
        await self._client.close()

    async def synchronize(self) -> None:
        """Learn the server's clock, unless it was asked recently, and whether its lag has changed.

        Without a time in the query, VictoriaMetrics answers for 30 s ago (its
        `-search.latencyOffset`). For any later time it would repeat its data of that instant. So
        the answer here is its clock, and no query is about a later instant.
        """
        if self._at is None and not self._server_clock.is_synchronized:
            self._server_clock.set(await self._client.time())
        if self._is_late and (now := self._present()) >= self._lag_due_at:
            self._lag_due_at = now + self.step_seconds
            with contextlib.suppress(errors.SourceError):  # then the lag stays what it was
                age = await self._client.number("lag", promql_texts.NEWEST_AGE, now)
                if age is not None:
                    self._note_age(now, age)

    @property
    def lag_seconds(self) -> float:
        return self._lag.seconds

    def now(self) -> float:
        """The time on the server's clock; where all samples arrive late, so much earlier."""
        return self._present() - self._lag.seconds

    def _present(self) -> float:
        return self._server_clock.now() if self._at is None else self._at

    def instant(self) -> float:
        return evaluation_times.floored(self.now() - self.settled_seconds, self.step_seconds)

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the samples up to `at`, and the ages of the stale ones among them.

        They overlap with the time that `history` covers, so that both give one continuous record.
        Queries about one namespace do not show the health of exporters: absence is then unknown.
        """
        step, namespaces = self.step_seconds, snapshot_query.namespaces
        reach = max(snapshot_query.span_seconds, 2 * HISTORY_STEP_SECONDS)
        wide = replace(snapshot_query, span_seconds=evaluation_times.whole_steps(reach, step))
        if (own := snapshot_query.query) is not None:
            async with self._client.own_turn(namespaces):
                observation = await self._fetch_elements("own", own, wide, at, step)
                text = promql_texts.element_ages_text(own, step)
                rows = await self._client.ask("own-age", text, at, parse_vector, OWN_BYTES)
            pods = {(element.namespace, element.pod) for element in observation.series}
            return replace(observation, sample_ages=series.oldest_ages(rows, pods))
        with self._client.turn():
            observation = await self._fetch_observation("snapshot", wide, at, step)
            write = partial(promql_texts.ages_text, self._metric_sources(snapshot_query))
            rows = await self._client.rows("age", namespaces, write, at, parse_vector)
        is_alive = any(promql_texts.ALIVE_LABEL in row.labels for row in rows)
        is_on_time = any(promql_texts.ON_TIME_LABEL in row.labels for row in rows)
        shows_targets = self._client.shows_targets
        self._is_late = bool(self._lag.seconds) or (shows_targets and not is_on_time)
        if not self._is_late:
            self._note_age(at, 0.0)
        return replace(
            observation,
            sample_ages=series.sample_ages(rows, observation.targets_own),
            absence_known=is_alive and shows_targets,
        )

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        hour = replace(snapshot_query, span_seconds=evaluation_times.HISTORY_SECONDS)
        step = HISTORY_STEP_SECONDS
        before = evaluation_times.floored(at - self.step_seconds, step)
        if (own := snapshot_query.query) is not None:
            async with self._client.own_turn(snapshot_query.namespaces):
                return await self._fetch_elements("own-history", own, hour, before, step)
        with self._client.turn():
            return await self._fetch_observation("history", hour, before, step)

    async def past(
        self, snapshot_query: SnapshotQuery, at: float, step_seconds: float
    ) -> Observation:
        """Return the samples in the query's span up to any time, at instants of a step."""
        if (own := snapshot_query.query) is not None:
            return await self._fetch_elements("past", own, snapshot_query, at, step_seconds)
        return await self._fetch_observation("past", snapshot_query, at, step_seconds)

    async def past_numbers(
        self, text: str, span_seconds: float, at: float, step_seconds: float
    ) -> dict[float, float]:
        """Return the numbers that a demand's expression gave in the span up to `at`, by time."""
        # The line break ends a comment in the text.
        ranged = f"({text}\n){promql_texts.range_text(span_seconds, step_seconds)}"
        rows = await self._client.ask("past-demand", ranged, at, parse_matrix)
        times = evaluation_times.within(at, span_seconds, step_seconds)
        rows = evaluation_times.between(times[0], times[-1], rows)
        points = [point for row in rows for point in row.points]
        numbers = dict(points)
        if len(numbers) < len(points):
            raise several(len(rows))
        return {time: number for time, number in numbers.items() if is_countable(number)}

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return the reports of these GPUs; each query is about a few hundred."""
        by_state: dict[str, set[str]] = {"reported": set(), "busy": set()}
        ordered = iter(sorted(filter(None, uuids)))  # an element need not name its GPU
        while batch := list(itertools.islice(ordered, GPUS_PER_QUERY)):
            with self._client.turn():
                names, jobs = frozenset(batch), self._client.settings.exporter_jobs
                write = partial(promql_texts.gpus_text, jobs=jobs)
                rows = await self._client.rows("gpus", names, write, at, parse_vector)
            for row in rows:
                state = row.labels.get(promql_texts.STATE_LABEL, "")
                by_state.setdefault(state, set()).add(profiles.board_of(row.labels))
        return GpuReports(frozenset(by_state["reported"]), frozenset(by_state["busy"]))

    async def number(self, text: str) -> float | None:
        """Return the one number that a PromQL expression gives at the server's present time.

        VictoriaMetrics answers for 30 s ago, as for every query without a time.
        """
        async with self._client.number_turns:
            return await self._client.number("demand", text, self._at)

    async def look(self) -> Look:
        """Return what there is of accelerators; names and labels are others' texts."""
        rows: dict[str, list[Mapping[str, str]]] = defaultdict(list)
        for row in await self._client.ask("look", promql_texts.LOOK, self._at, parse_vector):
            labels = {
                printable(name, LABEL_CHARACTERS): printable(text, LABEL_CHARACTERS)
                for name, text in row.labels.items()
            }
            if labels.get("__name__"):
                rows[labels.pop(promql_texts.LOOK_LABEL, "")].append(labels)
        return Look(
            metrics=rows[promql_texts.METRICS],
            series=rows[promql_texts.A_SERIES],
            targets=rows[promql_texts.A_TARGET],
            pods=rows[promql_texts.PODS],
            jobs=self._client.settings.exporter_jobs,
        )

    async def _fetch_observation(
        self, kind: str, snapshot_query: SnapshotQuery, at: float, step: float
    ) -> Observation:
        """Return the observation; query again if there is a new exporter or a new scrape job."""
        span = snapshot_query.span_seconds
        for _ in range(QUERIES_OF_A_STEP):
            known, jobs = self._exporters, self._jobs.names
            metric_sources = self._metric_sources(snapshot_query)
            write = partial(promql_texts.snapshot_text, metric_sources, jobs, span, step)
            rows = await self._client.rows(kind, snapshot_query.namespaces, write, at, parse_matrix)
            if snapshot_query.profile == profiles.AUTO:
                await self._look_for_exporters(at)
            if allowed := self._client.settings.exporter_jobs:
                rows = [row for row in rows if row.labels.get("job") in allowed]
            shown: dict[str, set[str | None]] = defaultdict(set)
            for row in rows:
                if job := row.labels.get("job"):
                    shown[job].update(map(row.labels.get, profiles.NAMESPACE_LABELS))
            self._jobs.note({job: len(namespaces) for job, namespaces in shown.items()})
            if (self._exporters, self._jobs.names) == (known, jobs):
                break
        exporters = series.Exporters(
            collection_seconds=self._client.settings.collection_seconds,
            breadths=await self._breadths(snapshot_query, shown.keys(), at),
        )
        observation = await asyncio.to_thread(
            series.read_observation, rows, snapshot_query, at, step, exporters
        )
        metrics = profiles.metric_names(snapshot_query.profile, snapshot_query.signal)
        self._believed[metrics] = frozenset(gpu.target.job for gpu in observation.series)
        for job, wider in observation.overruled.items():
            self._client.observe(facts.JobOverruled(self._client.name, printable(job), wider))
        return observation

    async def _breadths(
        self, snapshot_query: SnapshotQuery, jobs: Collection[str], at: float
    ) -> Mapping[str, Breadth]:
        """Return how much each of several jobs shows in all namespaces, as asked recently.

        If the server refuses that query, what was known stays in use, or else the jobs that counted
        last count on.
        """
        metrics = profiles.metric_names(snapshot_query.profile, snapshot_query.signal)
        asked_at, breadths = self._breadths_asked.get(metrics, (float("-inf"), {}))
        # One that is left out of queries shows nothing that is known.
        asked = self._jobs.names.intersection(jobs)
        is_recent = self._client.clock() - asked_at < DETECTED_SECONDS
        if len(jobs) > 1 and not (is_recent and breadths.keys() >= asked):
            last = self._believed.get(metrics, frozenset())
            breadths = {job: Breadth(int(job in last)) for job in asked} | {**breadths}
            with contextlib.suppress(errors.SourceError):
                text = promql_texts.breadth_text(metrics, asked)
                rows = await self._client.ask("breadth", text, at, parse_vector)
                breadths = dict.fromkeys(asked, Breadth()) | series.breadths(rows)
            self._breadths_asked[metrics] = self._client.clock(), breadths
        return breadths

    def _metric_sources(self, snapshot_query: SnapshotQuery) -> tuple[MetricSource, ...]:
        return profiles.metric_sources(
            snapshot_query.profile, snapshot_query.signal, self._exporters
        )

    async def _look_for_exporters(self, at: float) -> None:
        """Look for exporters, unless that was done recently.

        If the server refuses that query, the known exporters stay in use.
        """
        async with self._exporters_asking:
            if self._client.clock() - self._exporters_asked_at < DETECTED_SECONDS:
                return
            self._exporters_asked_at = self._client.clock()
            with contextlib.suppress(errors.SourceError):
                rows = await self._client.ask("exporters", promql_texts.EXPORTERS, at, parse_vector)
                shown = {row.labels.get(promql_texts.EXPORTER_LABEL, "") for row in rows}
                new = shown.intersection(profiles.DETECTED) - self._exporters
                if new:
                    self._exporters |= new
                    self._client.observe(
                        facts.ExportersFound(self._client.name, tuple(sorted(new)))
                    )

    async def _fetch_elements(
        self, kind: str, own: OwnQuery, snapshot_query: SnapshotQuery, at: float, step: float
    ) -> Observation:
        """Return the elements of a custom query up to `at`.

        If the query itself leaves elements out, absence proves nothing, so their targets are not
        queried: only the cluster can show that a pod has ended.
        """
        span = snapshot_query.span_seconds
        times = evaluation_times.within(at, span, step)
        text = promql_texts.elements_text(own, span, step)
        # A command that reads the past asks once at a time, and for fifteen times the points.
        limit_bytes = None if kind == "past" else OWN_BYTES
        answer = await self._client.ask(kind, text, at, parse_matrix, limit_bytes)
        rows = evaluation_times.between(times[0], times[-1], answer)
        good_scrapes: dict[Target, dict[float, float]] = {}
        jobs = {row.labels["job"] for row in rows if row.labels.get("job")}
        if own.is_complete and 0 < len(jobs) <= OWN_JOBS:
            text = promql_texts.element_targets_text(jobs, span, step)
            targets = await self._client.ask("own-targets", text, at, parse_matrix, limit_bytes)
            good_scrapes = {row.target: scrape_times(row.points) for row in targets}
        elements, refused, unmatched = await asyncio.to_thread(
            series.read_elements, rows, snapshot_query.namespaces
        )
        return Observation(
            instants=times,
            series=series.fill_gaps(elements, good_scrapes),
            good_scrapes=good_scrapes,
            refused_samples=refused,
            unmatched_elements=len(unmatched),
            unmatched_labels=frozenset(unmatched[0].labels) if unmatched else frozenset(),
            is_selective=not own.is_complete,
            collection_seconds=self._client.settings.collection_seconds + own.lookback_seconds,
        )

    def _note_age(self, at: float, age_seconds: float) -> None:
        """Note the age of the newest sample, and state a lag that has changed."""
        before = self._lag.seconds
        self._lag.observe(at, age_seconds)
        if self._lag.seconds != before:
            self._client.observe(facts.LagChanged(self._client.name, self._lag.seconds, before))


class KubeStateMetrics:
    """The kube-state-metrics that one server scrapes, if any."""

    name = "kube-state-metrics"

    def __init__(
        self, client: PrometheusClient, without_gpus: frozenset[str] = frozenset()
    ) -> None:
        """Query one server; `without_gpus` is what pods may ask for and is no GPU."""
        self._client, self._without_gpus = client, without_gpus
        self._jobs = ScrapeJobs(client, EVIDENCE_JOBS_BYTES)
        self._lists_pods = False
        self._kinds = frozenset[str]()
        """The kinds of owners that it lists."""
        self._looked_at = float("-inf")
        self._covered: frozenset[str] = frozenset()
        self._covered_at = float("-inf")

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence | None:
        """Return the evidence about these namespaces; None: there never was one to query."""
        del now  # the server knows the age of its samples
        # Until one is found, look each time: a server that has just started can show the exporters
        # before kube-state-metrics. Until then a pod on a node with its exporter down is not known.
        if not self._jobs.names or self._client.clock() - self._looked_at >= FOUND_SECONDS:
            self._looked_at = self._client.clock()
            try:
                rows = await self._client.ask("jobs", kube_state_texts.JOBS, at, parse_vector)
            except errors.SourceError:  # it is about all namespaces, and may be too large
                if not self._jobs.names:
                    raise
                rows = []
            else:
                ordered = sorted(rows, key=lambda row: row.values[0])
                self._jobs.note({row.labels.get("job", ""): row.values[0] for row in ordered})
            metrics = {row.labels.get("__name__", "") for row in rows}
            self._lists_pods |= kube_state_texts.PODS in metrics
            self._kinds |= {
                kube_state_texts.LISTED_KINDS[name]
                for name in metrics & kube_state_texts.LISTED_KINDS.keys()
            }
        if not self._jobs.names:
            return None
        new = names = frozenset(namespaces)
        if 0 <= at - self._covered_at <= kube_state_texts.PAST_SECONDS:
            new -= self._covered  # the past of the others is queried
        write = partial(kube_state_texts.kube_state_text, self._jobs.names, new, self._without_gpus)
        with self._client.turn():
            rows = await self._client.rows("evidence", names, write, at, parse_vector)
            evidence = await asyncio.to_thread(read_evidence, rows, self._kinds)
            del rows
        # A known job that is down is still expected to answer.
        self._jobs.note(dict.fromkeys((target.job for target in evidence.down), 0))
        self._covered, self._covered_at = evidence.covered, at
        if self._lists_pods and self._client.shows_targets:
            return evidence
        # Of a kube-state-metrics that does not collect pods, or whose health is not shown, no list
        # of pods is known to be complete.
        return replace(evidence, stable_since={})
