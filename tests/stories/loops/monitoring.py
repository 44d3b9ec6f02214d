"""The scaler's source: what a Prometheus stores of exporters and of kube-state-metrics."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import EvidenceProvider, Source
from keda_gpu_scaler.query.snapshot_query import SnapshotQuery
from keda_gpu_scaler.snapshot.evidence import Evidence, EvidenceSource
from keda_gpu_scaler.snapshot.observation import GpuReports, Observation, Series, Target
from keda_gpu_scaler.sources.evaluation_times import HISTORY_SECONDS, HISTORY_STEP_SECONDS
from keda_gpu_scaler.sources.lag import LEAST_SECONDS, Lag
from keda_gpu_scaler.spec.workload import Owner
from tests.stories.loops.pods import COLLECT, SimPod

STEP = 15
LIST = 30
"""kube-state-metrics is scraped so often."""
KUBE_STATE = Target("kube-state-metrics", "10.0.1.1:8080")
AT_ONCE = float("-inf")


SETTLED = 120
"""How long kube-state-metrics has to answer before its list counts as whole."""
LOOKBACK = 300
"""How long Prometheus shows a series that it scrapes no more, and did not see vanish."""


@dataclass(slots=True)
class Second:
    """A second Prometheus: it scrapes the same, later, and has stored nothing while it was down."""

    answers: Callable[[float], bool]
    """Whether the question about an instant is answered by it."""
    down: tuple[float, float] = (float("inf"), float("inf"))
    late_seconds: float = 0.0
    """How much later it scrapes."""

    def scraped_at(self, pod: SimPod, now: float) -> float:
        """Return the time of the sample that it shows of a pod."""
        began, ended = self.down
        now -= self.late_seconds
        if now < began:
            return now
        saw_it_go = now >= ended and pod.value(ended) is not None
        is_scraped = now >= ended and pod.value(now) is not None
        return now if saw_it_go or is_scraped else began - 1


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
    step_seconds: float = STEP
    history_since: float = AT_ONCE
    """What Prometheus stores begins here."""
    listed_since: float = AT_ONCE
    """kube-state-metrics is scraped from here on."""
    counted: Callable[[], float | None] | None = None
    """What a demandQuery gives; None: it is refused."""
    away_until: float = AT_ONCE
    """Prometheus answers nothing before; it goes on storing."""
    second: "Second | None" = None
    """The other one of a pair behind one address."""
    late_seconds: Callable[[str, float], float] = lambda _target, _now: 0.0
    """How long a sample of a target takes to arrive, by the target's address and the time."""
    scraped_until: float = float("inf")
    """From here on Prometheus scrapes nothing."""

    lag: Lag = field(default_factory=lambda: Lag(STEP))

    is_direct: bool = False
    """The scaler scrapes the exporters itself: there is no past, and nothing else is stored."""

    name: str = "kube-state-metrics"

    def ports(self, *stronger: EvidenceProvider) -> Source:
        """Return what can be asked of it."""
        return Source(self, (*stronger, self), self)

    async def synchronize(self) -> None:
        """Look how old the newest sample is: the clock is the loop's, or as late as all samples."""
        now = self.clock()
        targets = {KUBE_STATE, *(pod.target for pod in self.pods if pod.scraped(now))}
        age = now - max(map(self._stored_until, targets))
        if age < LOOKBACK:
            self.lag.observe(now, age if age > LEAST_SECONDS else 0.0)

    @property
    def lag_seconds(self) -> float:
        """How late all samples are."""
        return self.lag.seconds

    def now(self) -> float:
        """Return the simulated time, or the one that the samples are of."""
        return self.clock() - self.lag.seconds

    def instant(self) -> float:
        """Return the newest multiple of the step."""
        return self.now() // STEP * STEP

    async def fetch(self, snapshot_query: SnapshotQuery, at: float) -> Observation:
        """Return what Prometheus stores of the exporters."""
        self._answers()
        return self._observed(at, snapshot_query.span_seconds, STEP)

    async def history(self, snapshot_query: SnapshotQuery, at: float) -> Observation | None:
        """Return the last hour."""
        if self.is_direct:
            return None
        assert snapshot_query.namespaces == {"ml"}
        self._answers()
        return self._observed(at - STEP, HISTORY_SECONDS, HISTORY_STEP_SECONDS)

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return the GPUs that are reported without their pods: those of exporters that answer."""
        self._answers()
        wanted = frozenset(uuids)
        then = [(pod, min(at, self._stored_until(pod.target))) for pod in self.pods]
        there = {pod.gpu for pod, time in then if pod.is_shown(time)}
        busy = {pod.gpu for pod, time in then if pod.is_busy_without_pod(time)}
        return GpuReports(wanted & there, wanted & busy)

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence | None:
        """Return what kube-state-metrics said at its last scrape."""
        assert namespaces == {"ml"}
        assert at <= now
        self._answers()
        if self.evidence_from is not EvidenceSource.KUBE_STATE_METRICS:
            return None
        scraped = min(at, self._stored_until(KUBE_STATE)) // LIST * LIST
        if scraped < self.listed_since or at - scraped >= LOOKBACK:
            return Evidence({})
        recent = (scraped - (at - SETTLED)) // LIST + 1
        is_settled = scraped - SETTLED >= self.listed_since and recent >= 1
        stable_since = {KUBE_STATE: SETTLED / recent} if is_settled else {}
        pods = {("ml", pod.name): pod.said(scraped) for pod in self.pods if pod.exists(scraped)}
        counted = any(pod.counts(scraped) for pod in self.pods)
        empty = frozenset() if counted else frozenset({("ml", self.owner)})
        return Evidence(
            pods,
            empty,
            frozenset({"ml"}),
            {KUBE_STATE: scraped},
            stable_since,
            wanted={("ml", self.owner): self.wanted(scraped)},
        )

    async def number(self, text: str) -> float | None:
        """Return what a router counts."""
        self._answers()
        if self.counted is None:
            raise errors.SourceRefusedError(f"HTTP 400, bad_data: {text}")
        return self.counted()

    def shown(self) -> list[float] | None:
        """Return what a query for the pods' GPUs gives now; None: it fails."""
        if self.clock() < self.away_until:
            return None
        values = (pod.value(self.clock()) for pod in self.pods)
        return [value for value in values if value is not None]

    def _answers(self) -> None:
        if self.clock() < self.away_until:
            raise errors.SourceUnreachableError("connection refused")

    def _observed(self, at: float, span: float, step: float) -> Observation:
        first, last = (at - span) // step + 1, at // step
        instants = tuple(float(n * step) for n in range(int(first), int(last) + 1))
        stored = tuple(time for time in instants if time >= self.history_since)
        instants = stored if self.is_direct else instants
        seen = self.second if self.second is not None and self.second.answers(at) else None
        return Observation(
            instants,
            tuple(self._series(stored, seen)),
            {
                pod.target: scrapes
                for pod in self.pods
                if (scrapes := self._scrapes(pod, stored)) and pod.unlisted > at - 2 * STEP
            },
            sample_ages=self._ages(at, seen),
            absence_known=self.history_since <= at - SETTLED,
            collection_seconds=COLLECT,
            sampled_since=self.history_since if self.is_direct else AT_ONCE,
        )

    def _scrapes(self, pod: SimPod, instants: tuple[float, ...]) -> dict[float, float]:
        """Return the instants at which the newest stored scrape was good, and its time."""
        until = self._stored_until(pod.target)
        stored = {time: min(time, until) for time in instants if time - until < LOOKBACK}
        return {time: then for time, then in stored.items() if pod.scraped(then)}

    def _scraped_at(self, pod: SimPod, seen: Second | None) -> Callable[[float], float]:
        """Return what tells the time of the sample of a pod that is shown at an instant."""
        if seen:
            return lambda time: seen.scraped_at(pod, time)
        until = self._stored_until(pod.target)
        return lambda time: min(time, until)

    def _stored_until(self, target: Target) -> float:
        """Return up to when the samples of a target are stored."""
        now = self.clock()
        return min(now - self.late_seconds(target.instance, now), self.scraped_until)

    def _ages(self, at: float, seen: Second | None) -> dict[tuple[str, str], float]:
        """Return the ages of samples that are older than a minute."""
        ages = {pod.name: at - self._scraped_at(pod, seen)(at) for pod in self.pods}
        return {("ml", name): age for name, age in ages.items() if 60 < age < LOOKBACK}

    def _series(self, instants: tuple[float, ...], seen: Second | None) -> Iterator[Series]:
        for pod in self.pods:
            scraped_at = self._scraped_at(pod, seen)
            scraped = {time: scraped_at(time) for time in instants}
            shown = {
                time: pod.value(then) for time, then in scraped.items() if time - then < LOOKBACK
            }
            present = tuple(time for time, value in shown.items() if value is not None)
            values = {
                time: value
                for time, value in shown.items()
                if value is not None and time < pod.refused_since
            }
            if present:
                yield Series(
                    "ml",
                    pod.name,
                    pod.gpu,
                    pod.target,
                    present=present,
                    times=tuple(values),
                    values=tuple(values.values()),
                    averaged=self.averaged,
                    shows_free_gpus=True,
                )
