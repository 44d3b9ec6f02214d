"""A source that shows a small world and does what a test tells it: for faults and for counting."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import EvidenceProvider, Source
from keda_gpu_scaler.record.causes import Look
from keda_gpu_scaler.snapshot.evidence import Evidence
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation
from keda_gpu_scaler.spec.spec import ScaledObject, Signal, SnapshotQuery
from keda_gpu_scaler.spec.workload import PodSelector
from tests.support.worlds import STEP, World


@dataclass(slots=True)
class Clock:
    """Seconds that pass when a test says so."""

    seconds: float = 100_000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass(slots=True)
class ScriptedSource:
    """Shows a world on a clock; fails, hangs and breaks on request."""

    world: World
    clock: Clock
    step_seconds: float = STEP
    trouble: Exception | None = None
    refused_signals: Collection[Signal] = ()
    history_trouble: Exception | None = None
    without_history: bool = False
    gate: asyncio.Event | None = None
    """While set to an event, a fetch waits for it."""
    reports: GpuReports = field(default_factory=GpuReports)
    fetched: list[SnapshotQuery] = field(default_factory=list)
    remembered: list[SnapshotQuery] = field(default_factory=list)
    said: Evidence | None = None
    evidence_trouble: errors.SourceError | None = None
    evidence_gate: asyncio.Event | None = None
    questioned: list[tuple[frozenset[str], float]] = field(default_factory=list)
    located: list[frozenset[str]] = field(default_factory=list)
    is_selective: bool = False
    """Its answers leave out pods that are there, and tell nothing of exporters."""
    shows: Look | errors.SourceError | None = None
    """What it shows of accelerators; None: it cannot be asked."""
    looked: int = 0
    """How often it was asked for that."""
    numbers: dict[str, float | Exception | None] = field(default_factory=dict)
    """What it says to a demandQuery; to any other it says nothing."""
    number_gate: asyncio.Event | None = None
    number_begun: asyncio.Event = field(default_factory=asyncio.Event)
    numbers_asked: list[str] = field(default_factory=list)
    within_namespaces: dict[str, "ScriptedSource"] = field(default_factory=dict)
    """The sources for a namespace alone."""
    name: str = "kube-state-metrics"
    settled_seconds: float = 0.0
    lag_seconds: float = 0.0
    """How late all samples are known to be."""
    real_lag_seconds: float | None = None
    """How late they turn out to be when it is asked for its clock; None: as late as known."""

    def ports(self, *stronger: EvidenceProvider, is_per_namespace: bool = False) -> Source:
        """Return what can be asked of it; its own evidence comes after the stronger."""
        of_namespace = self._of_namespace if is_per_namespace else None
        accelerators = None if self.shows is None else self.look
        return Source(
            self,
            (*stronger, self),
            self,
            of_namespace=of_namespace,
            accelerators=accelerators,
        )

    def _of_namespace(self, namespace: str) -> Source:
        """Return one more source for this namespace in the same world."""
        own = ScriptedSource(self.world, self.clock, said=self.said, numbers=self.numbers)
        self.within_namespaces[namespace] = own
        return own.ports()

    async def synchronize(self) -> None:
        """Learn the lag: the clock is the test's."""
        if self.real_lag_seconds is not None:
            self.lag_seconds = self.real_lag_seconds

    def now(self) -> float:
        """Return the test's time, earlier where samples are late."""
        return self.clock() - self.lag_seconds

    def instant(self) -> float:
        return self.now() // self.step_seconds * self.step_seconds

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        self.fetched.append(snapshot_query)
        if self.gate is not None:
            await self.gate.wait()
        if self.trouble is not None:
            raise self.trouble
        if snapshot_query.signal in self.refused_signals:
            raise REFUSED
        return self._shown(snapshot_query, self.world.observed(at))

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation | None:
        self.remembered.append(snapshot_query)
        if self.history_trouble is not None:
            raise self.history_trouble
        if self.without_history:
            return None
        return self._shown(snapshot_query, self.world.observed(at - STEP, step=120.0, span=3600.0))

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        assert at <= self.clock()
        self.located.append(frozenset(uuids))
        return self.reports

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence | None:
        assert now == self.now()
        self.questioned.append((frozenset(namespaces), at))
        if self.evidence_gate is not None:
            await self.evidence_gate.wait()
        if self.evidence_trouble is not None:
            raise self.evidence_trouble
        return self.said

    async def look(self) -> Look:
        self.looked += 1
        assert self.shows is not None
        if isinstance(self.shows, errors.SourceError):
            raise self.shows
        return self.shows

    async def number(self, text: str) -> float | None:
        self.numbers_asked.append(text)
        self.number_begun.set()
        if self.number_gate is not None:
            await self.number_gate.wait()
        said = self.numbers.get(text)
        if isinstance(said, Exception):
            raise said
        return said

    def _shown(self, snapshot_query: SnapshotQuery, observation: Observation) -> Observation:
        asked = tuple(
            one for one in observation.series if one.namespace in snapshot_query.namespaces
        )
        shown = replace(observation, series=asked)
        return replace(shown, is_selective=True, good_scrapes={}) if self.is_selective else shown


@dataclass(slots=True)
class ScriptedCluster:
    """A Kubernetes API that says what a test tells it."""

    said: Evidence | None = None
    """None: it cannot be reached."""
    targets: dict[ScaledObject, PodSelector] = field(default_factory=dict)
    asked: list[tuple[frozenset[str], float, float]] = field(default_factory=list)
    patience: list[float] = field(default_factory=list)
    name: str = "the Kubernetes API"

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence:
        self.asked.append((frozenset(namespaces), at, now))
        if self.said is None:
            raise AWAY
        return self.said

    async def target(self, scaled_object: ScaledObject, grace_seconds: float) -> PodSelector:
        self.patience.append(grace_seconds)
        if scaled_object not in self.targets:
            raise AWAY
        return self.targets[scaled_object]


@dataclass(slots=True)
class ScriptedAlerts:
    """An alert store that a test writes."""

    alert: str | None = None
    """What fires, for every ScaledObject."""
    calls: list[Callable[[], None]] = field(default_factory=list)

    def firing(self, scaled_object: ScaledObject) -> str | None:
        assert scaled_object.namespace
        return self.alert

    @contextmanager
    def listen(self, scaled_object: ScaledObject, call: Callable[[], None]) -> Iterator[None]:
        """Call this at each change, until the block ends."""
        assert scaled_object.namespace
        self.calls.append(call)
        try:
            yield
        finally:
            self.calls.remove(call)

    def change(self, alert: str | None) -> None:
        self.alert = alert
        for call in tuple(self.calls):
            call()


AWAY = errors.SourceUnreachableError("cannot list pods: nobody answers")
REFUSED = errors.SourceRefusedError("HTTP 503, unavailable: the server is shutting down")
