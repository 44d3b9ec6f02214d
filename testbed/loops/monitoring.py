"""The scaler's source: what a Prometheus stores of exporters and of kube-state-metrics."""

import math
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import EvidenceProvider, Source
from keda_gpu_scaler.snapshot.evidence import Evidence, EvidenceSource, PodStatement
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Row, Target
from keda_gpu_scaler.sources.evaluation_times import (
    HISTORY_SECONDS,
    HISTORY_STEP_SECONDS,
    LEAST_SECONDS,
    Lag,
    within,
)
from keda_gpu_scaler.spec.spec import SnapshotQuery
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.workbench.world.loop import STEP_SECONDS
from testbed.loops.dialects import AVERAGE, BLANK, SAMPLE, TENANT, Dialect, asked_of_the_list
from testbed.loops.pods import SimPod

KUBE_STATE = Target("kube-state-metrics", "10.0.1.1:8080")
AT_ONCE = float("-inf")


SETTLED = 120
"""How long kube-state-metrics has to answer before its list counts as whole."""
LOOKBACK = 300
"""How long Prometheus shows a series that it scrapes no more, and did not see vanish."""


class Scrapes(NamedTuple):
    """When a target is scraped; in whole seconds, so that each time is exact."""

    every_seconds: int = STEP_SECONDS
    phase_seconds: int = 0

    def newest(self, now: float) -> float:
        return now - (now - self.phase_seconds) % self.every_seconds


EVERY_30 = Scrapes(30)


@dataclass(slots=True)
class Second:
    """A second Prometheus: it scrapes the same, later, and has stored nothing while it was down."""

    answers: Callable[[str, float], bool]
    """Whether it answers a request, such as that for the ages, about an instant."""
    down: tuple[float, float] = (float("inf"), float("inf"))
    late_seconds: float = 0.0
    """How much later it scrapes."""

    def scraped_at(self, shows: Callable[[float], bool], now: float) -> float:
        """Return the time of the sample that it has of what a scrape shows at some times."""
        began, ended = self.down
        now -= self.late_seconds
        if now < began:
            return now
        return now if now >= ended and (shows(ended) or shows(now)) else began - 1


@dataclass(slots=True)
class Monitoring:
    """Reads the pods of one Deployment or LeaderWorkerSet in the namespace ml."""

    pods: list[SimPod]
    owner: Owner
    clock: Callable[[], float]
    evidence_from: EvidenceSource
    averaged: bool
    """What the exporters show are averages."""
    wanted: Callable[[float], int]
    """The replicas that the owner asked for at a time."""
    step_seconds: float = STEP_SECONDS
    history_since: float = AT_ONCE
    """What Prometheus stores begins here."""
    listed_since: float = AT_ONCE
    """kube-state-metrics is scraped from here on."""
    counted: Callable[[], float | None] | None = None
    """What a demandQuery gives; None: it is refused."""
    away_until: float = AT_ONCE
    """Prometheus answers nothing before; it goes on storing."""
    list_scrapes: Scrapes = EVERY_30
    """When kube-state-metrics is scraped."""
    exporter_scrapes: Callable[[Target], Scrapes] = lambda _target: Scrapes()
    """When an exporter is scraped."""
    second: "Second | None" = None
    """The other one of a pair behind one address."""
    late_seconds: Callable[[str, float], float] = lambda _target, _now: 0.0
    """How long a sample of a target takes to arrive, by the target's address and the time."""
    scraped_until: float = float("inf")
    """From here on Prometheus scrapes nothing."""
    shows_requests: bool = True
    """kube-state-metrics shows what pods ask for."""

    average: Callable[[SimPod, float], float | None] = lambda _pod, _time: None
    """What the average shows of a pod's first GPU beside its samples, at the time of a scrape;
    None: there is no average."""

    dialect: Dialect = field(default_factory=Dialect)

    lag: Lag = field(default_factory=lambda: Lag(STEP_SECONDS))

    settled_seconds: float = 0.0

    is_direct: bool = False
    """The scaler scrapes the exporters itself: there is no past, and nothing else is stored."""

    name: str = "kube-state-metrics"

    def ports(self, *stronger: EvidenceProvider) -> Source:
        return Source(self, (*stronger, ListOfPods(self)), self)

    async def synchronize(self) -> None:
        """Look how old the newest sample is: the clock is the loop's, or as late as all samples."""
        now = self.clock()
        targets = {KUBE_STATE, *(pod.target for pod in self.pods if pod.scraped(now))}
        age = now - max(map(self._stored_until, targets))
        if age < LOOKBACK:
            self.lag.observe(now, age if age > LEAST_SECONDS else 0.0)

    @property
    def lag_seconds(self) -> float:
        return self.lag.seconds

    def now(self) -> float:
        return self.clock() - self.lag.seconds

    def instant(self) -> float:
        return self.now() // STEP_SECONDS * STEP_SECONDS

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        self._answers()
        return self._observed("snapshot", at, snapshot_query, STEP_SECONDS)

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation | None:
        if self.is_direct:
            return None
        assert snapshot_query.namespaces == {"ml"}
        self._answers()
        hour = replace(snapshot_query, span_seconds=HISTORY_SECONDS)
        return self._observed("history", at - STEP_SECONDS, hour, HISTORY_STEP_SECONDS)

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return the GPUs that are reported without their pods: those of exporters that answer."""
        self._answers()
        wanted = frozenset(uuids)
        then = [(pod, min(at, self._stored_until(pod.target))) for pod in self.pods]
        there = {gpu for pod, time in then if pod.is_shown(time) for gpu in pod.gpus}
        busy = {gpu for pod, time in then if pod.is_busy_without_pod(time) for gpu in pod.gpus}
        return GpuReports(wanted & there, wanted & busy)

    async def evidence(
        self, namespaces: Collection[str], at: float, now: float, *, is_first: bool = False
    ) -> Evidence | None:
        """Return what kube-state-metrics said at its last scrape, and at first who just left."""
        assert namespaces == {"ml"}
        assert at <= now
        self._answers()
        if self.evidence_from is not EvidenceSource.KUBE_STATE_METRICS:
            return None
        scraped = self._scraped_at("evidence", at, KUBE_STATE, lambda _: True)(at)
        if scraped < self.listed_since or at - scraped >= LOOKBACK:
            return Evidence({})
        recent = math.ceil((scraped - (at - SETTLED)) / self.list_scrapes.every_seconds)
        is_settled = scraped - SETTLED >= self.listed_since and recent >= 1
        stable_since = {KUBE_STATE: SETTLED / recent} if is_settled else {}
        pods = {
            ("ml", pod.name): pod.said(scraped, asked_of_the_list(pod.asks))
            for pod in self.pods
            if pod.exists(scraped)
        }
        if is_first:
            pods |= {
                ("ml", pod.name): PodStatement(owners=pod.owners, ended=True, asks_gpu=None)
                for pod in self.pods
                if pod.exists(scraped - SETTLED) and not pod.exists(scraped)
            }
        if not self.shows_requests:
            pods = {key: replace(statement, asks_gpu=None) for key, statement in pods.items()}
        counted = any(pod.counts(scraped) for pod in self.pods)
        empty = frozenset() if counted else frozenset({("ml", self.owner)})
        return Evidence(
            pods,
            empty,
            frozenset({"ml"}),
            {KUBE_STATE: scraped},
            stable_since,
            wanted={("ml", self.owner): self.wanted(scraped)},
            owners={("ml", self.owner.kind): frozenset({self.owner.name})},
        )

    async def number(self, text: str) -> float | None:
        self._answers()
        if self.counted is None:
            raise errors.SourceRefusedError(f"HTTP 400, bad_data: {text}")
        return self.counted()

    def shown(self) -> list[float] | None:
        """Return what a query for the pods' GPUs gives now; None: it fails."""
        now = self.clock()
        if now < self.away_until:
            return None
        values = (
            pod.value(self._scraped_at("query", now, pod.target, pod.is_named)(now))
            for pod in self.pods
        )
        return [value for value in values if value is not None]

    def _answers(self) -> None:
        if self.clock() < self.away_until:
            raise errors.SourceUnreachableError("connection refused")

    def _observed(
        self, request: str, at: float, snapshot_query: SnapshotQuery, step: float
    ) -> Observation:
        instants = within(at, snapshot_query.span_seconds, step)
        stored = tuple(time for time in instants if time >= self.history_since)
        good_scrapes = {
            pod.target: scrapes
            for pod in self.pods
            if (scrapes := self._scrapes(request, at, pod, stored))
            and pod.unlisted > at - 2 * STEP_SECONDS
        }
        rows = self._rows(request, at, stored)
        return replace(
            self.dialect.read(rows, good_scrapes, snapshot_query, at, step),
            instants=stored if self.is_direct else instants,
            sample_ages=self._ages(at),
            absence_known=self.history_since <= at - SETTLED,
            sampled_since=self.history_since if self.is_direct else AT_ONCE,
        )

    def _scrapes(
        self, request: str, at: float, pod: SimPod, instants: tuple[float, ...]
    ) -> dict[float, float]:
        """Return the instants at which the newest stored scrape was good, and its time."""
        scraped_at = self._scraped_at(request, at, pod.target, pod.scraped)
        stored = {time: scraped_at(time) for time in instants}
        return {
            time: then
            for time, then in stored.items()
            if time - then < LOOKBACK and pod.scraped(then)
        }

    def _scraped_at(
        self, request: str, at: float, target: Target, shows: Callable[[float], bool]
    ) -> Callable[[float], float]:
        """Return what tells the time of the newest scrape that the answering server has stored."""
        scrapes = self.list_scrapes if target is KUBE_STATE else self.exporter_scrapes(target)
        second = self.second
        if second is not None and second.answers(request, at):
            return lambda time: scrapes.newest(second.scraped_at(shows, time))
        until = self._stored_until(target)
        return lambda time: scrapes.newest(min(time, until))

    def _stored_until(self, target: Target) -> float:
        """Return up to when the samples of a target are stored."""
        now = self.clock()
        return min(now - self.late_seconds(target.instance, now), self.scraped_until)

    def _ages(self, at: float) -> dict[tuple[str, str], float]:
        """Return the ages of samples that are older than a minute."""
        ages = {
            pod.name: at - self._scraped_at("ages", at, pod.target, pod.is_named)(at)
            for pod in self.pods
        }
        return {("ml", name): age for name, age in ages.items() if 60 < age < LOOKBACK}

    def _rows(self, request: str, at: float, instants: tuple[float, ...]) -> Iterator[Row]:
        """Yield what is stored of each GPU: by one metric, or by two."""
        metric, unit = (AVERAGE, 0.01) if self.averaged else (SAMPLE, 1.0)
        for pod in self.pods:
            scraped_at = self._scraped_at(request, at, pod.target, pod.is_named)
            scraped = {time: scraped_at(time) for time in instants}
            shown = {
                time: value
                for time, then in scraped.items()
                if time - then < LOOKBACK and (value := pod.value(then)) is not None
            }
            if not shown:
                continue
            averages = {time: self.average(pod, scraped[time]) for time in shown}
            for number, gpu in enumerate(pod.gpus):
                labels = self.dialect.stored({"namespace": "ml", "pod": pod.name, "UUID": gpu})
                labels |= pod.target._asdict()
                points = [
                    (time, value * unit if time < pod.refused_since else BLANK)
                    for time, value in shown.items()
                ]
                yield Row.of({**labels, "__name__": metric}, points)
                second = [
                    (time, value / 100) for time, value in averages.items() if value is not None
                ]
                if second and not number:
                    yield Row.of({**labels, "__name__": AVERAGE}, second)
                if self.dialect.tenant_shows is not None:
                    made_up = [(time, self.dialect.tenant_shows) for time in shown]
                    yield Row.of({**labels, **TENANT._asdict(), "__name__": SAMPLE}, made_up)


def each_at_its_own_second(salt: float) -> Callable[[Target], Scrapes]:
    """Return when each exporter is scraped, as often as the rest."""
    return lambda target: Scrapes(
        STEP_SECONDS, zlib.crc32(f"{salt} {target.instance}".encode()) % STEP_SECONDS
    )


class ListOfPods:
    """What one scaler is told by kube-state-metrics."""

    def __init__(self, monitoring: Monitoring) -> None:
        self.name = monitoring.name
        self._monitoring, self._is_first = monitoring, True

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence | None:
        found = await self._monitoring.evidence(namespaces, at, now, is_first=self._is_first)
        self._is_first = False
        return found
