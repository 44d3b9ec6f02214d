"""The scaler's source: what a Prometheus stores of exporters and of kube-state-metrics."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import EvidenceProvider, Source
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.evidence import Evidence, EvidenceSource
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Series, Target
from keda_gpu_scaler.spec.workload import Owner
from tests.stories.loops.pods import COLLECT, SimPod

STEP = 15
LIST = 30
"""kube-state-metrics is scraped so often."""
KUBE_STATE = Target("kube-state-metrics", "10.0.1.1:8080")
AT_ONCE = float("-inf")


@dataclass(slots=True)
class Monitoring:
    """Reads the pods of one Deployment or LeaderWorkerSet in the namespace ml."""

    pods: list[SimPod]
    owner: Owner
    clock: Callable[[], float]
    evidence_from: EvidenceSource
    averaged: bool
    """What the exporters show are averages."""
    step_seconds: float = STEP
    history_since: float = AT_ONCE
    """What Prometheus stores begins here."""
    listed_since: float = AT_ONCE
    """kube-state-metrics is scraped from here on."""
    counted: Callable[[], float | None] | None = None
    """What a demandQuery gives; None: it is refused."""
    away_until: float = AT_ONCE
    """Prometheus answers nothing before; it goes on storing."""

    name: str = "kube-state-metrics"

    def ports(self, *stronger: EvidenceProvider) -> Source:
        """Return what can be asked of it."""
        return Source(self, (*stronger, self), self)

    async def synchronize(self) -> None:
        """The clock is the loop's."""

    def now(self) -> float:
        """Return the simulated time."""
        return self.clock()

    def instant(self) -> float:
        """Return the newest multiple of the step."""
        return self.clock() // STEP * STEP

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return what Prometheus stores of the exporters."""
        self._answers()
        return self._observed(at, snapshot_query.span_seconds, STEP)

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return the last hour."""
        assert snapshot_query.namespaces == {"ml"}
        self._answers()
        return self._observed(at - STEP, 3600, 120)

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return the GPUs that are reported without their pods: those of exporters that answer."""
        self._answers()
        wanted = frozenset(uuids)
        there = {pod.name for pod in self.pods if pod.is_shown(at)}
        busy = {pod.name for pod in self.pods if pod.is_busy_without_pod(at)}
        return GpuReports(wanted & there, wanted & busy)

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence | None:
        """Return what kube-state-metrics said at its last scrape."""
        assert namespaces == {"ml"}
        assert at <= now
        self._answers()
        if self.evidence_from is not EvidenceSource.KUBE_STATE_METRICS:
            return None
        scraped = at // LIST * LIST
        if scraped < self.listed_since:
            return Evidence({})
        stable_since = {KUBE_STATE: float(LIST)} if scraped - 120 >= self.listed_since else {}
        pods = {("ml", pod.name): pod.said(scraped) for pod in self.pods if pod.exists(scraped)}
        counted = any(pod.counts(scraped) for pod in self.pods)
        empty = frozenset() if counted else frozenset({("ml", self.owner)})
        return Evidence(pods, empty, frozenset({"ml"}), {KUBE_STATE: scraped}, stable_since)

    async def number(self, text: str) -> float | None:
        """Return what a router counts."""
        self._answers()
        if self.counted is None:
            raise errors.SourceRefusedError(f"HTTP 400, bad_data: {text}")
        return self.counted()

    def _answers(self) -> None:
        if self.clock() < self.away_until:
            raise errors.SourceUnreachableError("connection refused")

    def _observed(self, at: float, span: float, step: int) -> Observation:
        first, last = (at - span) // step + 1, at // step
        instants = tuple(float(n * step) for n in range(int(first), int(last) + 1))
        stored = tuple(time for time in instants if time >= self.history_since)
        return Observation(
            instants,
            tuple(self._series(stored)),
            {
                pod.target: {time: time for time in stored if pod.scraped(time)}
                for pod in self.pods
                if any(pod.scraped(time) for time in stored) and pod.unlisted > at - 2 * STEP
            },
            absence_known=self.history_since <= at - 120,
            collection_seconds=COLLECT,
        )

    def _series(self, instants: tuple[float, ...]) -> Iterator[Series]:
        for pod in self.pods:
            shown = {time: pod.value(time) for time in instants}
            values = {time: value for time, value in shown.items() if value is not None}
            if values:
                times = tuple(values)
                yield Series(
                    "ml",
                    pod.name,
                    pod.name,
                    pod.target,
                    present=times,
                    times=times,
                    values=tuple(values.values()),
                    averaged=self.averaged,
                    shows_free_gpus=True,
                )
