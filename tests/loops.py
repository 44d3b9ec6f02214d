"""A closed loop in seconds of simulated time: exporters, cluster, scaler, HPA and KEDA.

Everything between the scrapes and the answer is the product's own code. Offered work is shared by
the Ready pods, each of which can do 100 %; a pod that loads its model shows what a test says.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from keda_gpu_scaler.autoscaling import Hpa, Keda, Metric, Scale
from keda_gpu_scaler.decision import Decision
from keda_gpu_scaler.evaluator import Evaluator
from keda_gpu_scaler.evidence import Basis, Evidence, Statement
from keda_gpu_scaler.kubernetes.following import API_SERVER
from keda_gpu_scaler.kubernetes.listing import GONE_SECONDS
from keda_gpu_scaler.observation import Demand, GpuReports, Observation, Series, Target
from keda_gpu_scaler.spec import Owner, TriggerSpec
from tests.scripted import ScriptedCluster
from tests.triggers import BERT, spec

STEP = 15
COLLECT = 30
"""dcgm-exporter looks at its GPUs so often, and shows the same numbers in between."""
LIST = 30
"""kube-state-metrics is scraped so often."""
DEPLOYMENT = Owner("Deployment", "bert")
KUBE_STATE = Target("kube-state-metrics", "10.0.1.1:8080")
LETTERS = "bcdfghjklmnpqrstvwxz"


@dataclass(slots=True)
class SimPod:
    """One pod on a node of its own."""

    number: int
    created: float
    ready: float
    loading: float
    deleted: float = float("inf")
    """From here on it is terminating."""
    gone: float = float("inf")
    silent: float = float("inf")
    """From here on its exporter does not answer."""
    unlisted: float = float("inf")
    """From here on its exporter is not even listed."""
    completed: float = float("inf")
    shown: dict[int, float] = field(default_factory=dict)
    """What the exporter collected, and when."""

    @property
    def name(self) -> str:
        """Return a name that the Deployment would give it."""
        return f"bert-7b6667bd9-{LETTERS[self.number // 20 % 20] * 4}{LETTERS[self.number % 20]}"

    @property
    def target(self) -> Target:
        """Return the exporter of its node."""
        return Target("dcgm", f"10.0.0.{self.number}:9400")

    def works(self, now: float) -> bool:
        """Tell whether it takes its share of the work."""
        return self.ready <= now < min(self.deleted, self.completed)

    def counts(self, now: float) -> bool:
        """Tell whether the Deployment counts it."""
        return self.created <= now < min(self.deleted, self.completed)

    def scraped(self, now: float) -> bool:
        """Tell whether its exporter answers a scrape."""
        return now < min(self.silent, self.unlisted)

    def value(self, now: float) -> float | None:
        """Return what a scrape shows, if it shows the pod."""
        if not self.created <= now < self.gone or not self.scraped(now):
            return None
        return self.shown.get(int(now // COLLECT) * COLLECT)


@dataclass(slots=True)
class Loop:
    """One Deployment in one cluster; it is the scaler's source as well."""

    offered: Callable[[float], float]
    basis: Basis = Basis.KUBE_STATE_METRICS
    replicas: int = 1
    start_seconds: float = 60.0
    loading: float = 100.0
    grace_seconds: float = 30.0
    trigger: TriggerSpec = field(default_factory=spec)
    hpa: Hpa = field(default_factory=lambda: Hpa(maximum=20))
    keda: Keda = field(default_factory=Keda)
    begin: float = 100_020.0
    step_seconds: float = STEP
    pods: list[SimPod] = field(default_factory=list)
    history_since: float = float("-inf")
    """What Prometheus stores begins here."""
    listed_since: float = float("-inf")
    """kube-state-metrics is scraped from here on."""
    sizes: list[int] = field(default_factory=list)
    """The replicas wanted, step by step."""
    decisions: list[Decision] = field(default_factory=list)
    clock: float = field(init=False)
    evaluator: Evaluator = field(init=False)

    def __post_init__(self) -> None:
        """Begin with pods that have been Ready for an hour."""
        self.clock = self.begin
        self.evaluator = Evaluator(
            {"default": self},
            cluster=_Api(loop=self) if self.basis is Basis.KUBERNETES else None,
            clock=lambda: self.clock,
        )
        for _ in range(self.replicas):
            self.pods.append(self._pod(self.begin - 3600 - self.start_seconds))
        for then in range(int(self.begin) - 3600, int(self.begin), COLLECT):
            self._collect(then)

    @property
    def elapsed(self) -> float:
        """Seconds since the loop began."""
        return self.clock - self.begin

    async def run(self, seconds: float, *, keda: bool = False) -> None:
        """Let time pass: a step of 15 s at a time, as the HPA syncs; KEDA polls every other one."""
        for _ in range(int(seconds // STEP)):
            if self.clock % COLLECT == 0:
                self._collect(int(self.clock))
            # Asked a little later than the instant it is about.
            self.clock += 2
            decided = await self.evaluator.evaluate(BERT, self.trigger, None)
            flights = [one for one in asyncio.all_tasks() if one.get_name().startswith("fetch ")]
            await asyncio.gather(*flights)
            self.clock += STEP - 2
            self.decisions.append(decided)
            self._scale(decided, keda=keda)
            self.sizes.append(self.replicas)

    def resize(self, replicas: int) -> None:
        """Create and delete pods as the Deployment would."""
        there = [pod for pod in self.pods if pod.counts(self.clock)]
        for _ in range(replicas - len(there)):
            self.pods.append(self._pod(self.clock))
        for pod in sorted(there, key=lambda one: -one.ready)[: max(0, len(there) - replicas)]:
            self.delete(pod)
        self.replicas = replicas

    def surge(self) -> None:
        """Create a pod beyond the replicas, as a rolling update does."""
        self.pods.append(self._pod(self.clock))

    def delete(self, pod: SimPod) -> None:
        """Delete a pod; it is gone after its grace period."""
        pod.deleted = self.clock
        pod.gone = self.clock + self.grace_seconds

    def _pod(self, created: float) -> SimPod:
        return SimPod(len(self.pods), created, created + self.start_seconds, self.loading)

    def _scale(self, decided: Decision, *, keda: bool) -> None:
        there = [pod for pod in self.pods if pod.counts(self.clock)]
        ready = sum(pod.works(self.clock) for pod in there)
        scale = Scale(spec=self.replicas, status=len(there), ready=ready)
        metric = Metric(value=decided.value, target=self.trigger.threshold)
        wanted = self.hpa.sync(self.clock, scale, [metric]).replicas
        if keda and self.clock % (2 * STEP) == 0:
            wanted = self.keda.poll(self.clock, wanted, [decided.active]).replicas
        self.resize(wanted)

    def _collect(self, now: int) -> None:
        working = [pod for pod in self.pods if pod.works(now)]
        share = min(100.0, self.offered(now - self.begin) / max(1, len(working)))
        for pod in self.pods:
            if pod.created <= now < pod.gone:
                drains = pod.deleted <= now
                busy = share if pod in working or drains else pod.loading
                pod.shown[now] = 0.0 if pod.completed <= now else busy

    # What the scaler asks.

    async def start(self) -> None:
        """Nothing runs on its own here."""

    async def close(self) -> None:
        """Nothing is open."""

    async def synchronize(self) -> None:
        """The clock is the loop's."""

    def now(self) -> float:
        """Return the simulated time."""
        return self.clock

    def instant(self) -> float:
        """Return the newest multiple of the step."""
        return self.clock // STEP * STEP

    async def fetch(self, demand: Demand, at: float) -> Observation:
        """Return what Prometheus stores of the exporters."""
        return self._observed(at, demand.span_seconds, STEP)

    async def history(self, demand: Demand, at: float) -> Observation:
        """Return the last hour."""
        assert demand.namespaces == {"ml"}
        return self._observed(at - STEP, 3600, 120)

    async def locate(self, uuids: Iterable[str], at: float) -> GpuReports:
        """Return the GPUs that are reported without their pods: those of exporters that answer."""
        there = {pod.name for pod in self.pods if pod.scraped(at)}
        return GpuReports(frozenset(uuid for uuid in uuids if uuid in there))

    async def evidence(self, namespaces: Collection[str], at: float) -> Evidence | None:
        """Return what kube-state-metrics said at its last scrape."""
        assert namespaces == {"ml"}
        if self.basis is not Basis.KUBE_STATE_METRICS:
            return None
        scraped = at // LIST * LIST
        if scraped < self.listed_since:
            return Evidence({})
        settled = {KUBE_STATE: float(LIST)} if scraped - 120 >= self.listed_since else {}
        pods = {("ml", pod.name): _said(pod, scraped) for pod in self.pods if _exists(pod, scraped)}
        counted = any(pod.counts(scraped) for pod in self.pods)
        empty = frozenset() if counted else frozenset({("ml", DEPLOYMENT)})
        return Evidence(pods, empty, frozenset({"ml"}), {KUBE_STATE: scraped}, settled)

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
                    averaged=False,
                )


@dataclass(slots=True)
class _Api(ScriptedCluster):
    """The Kubernetes API of a loop: it knows of each change at once."""

    loop: Loop | None = None

    async def evidence(self, namespaces: Collection[str], at: float, now: float) -> Evidence:
        """Return which pods there are now, and which went in the last minute."""
        assert self.loop is not None
        pods = {
            ("ml", pod.name): _said(pod, now)
            for pod in self.loop.pods
            if _exists(pod, now) or 0 <= now - pod.gone <= GONE_SECONDS
        }
        return Evidence(
            pods,
            covered=frozenset(namespaces),
            scrapes={API_SERVER: at},
            settled={API_SERVER: 0.0},
            basis=Basis.KUBERNETES,
        )


def _is_over(pod: SimPod, now: float) -> bool:
    return min(pod.deleted, pod.completed, pod.gone) <= now


def _exists(pod: SimPod, now: float) -> bool:
    return pod.created <= now < pod.gone


def _said(pod: SimPod, now: float) -> Statement:
    ready = pod.ready <= now < pod.completed
    return Statement(
        owners=frozenset({Owner("ReplicaSet", "bert-7b6667bd9"), DEPLOYMENT}),
        created_at=pod.created,
        ready=ready,
        ready_at=pod.ready if ready else None,
        ended=_is_over(pod, now),
        asks_gpu=True,
    )
