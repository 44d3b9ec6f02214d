"""The closed loop: work → replicas that share it → answers → KEDA and the HPA → replicas.

Pure: time goes on in steps, and all pods are alike. What answers, and what it sees of the
replicas, is for those who build on this.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Generic, TypeVar

from keda_gpu_scaler.autoscaling.rules import Hpa, Keda, Metric, Scale

STEP_SECONDS = 15
"""Between two syncs of the HPA, and two scrapes. KEDA polls at every second one."""
COLLECT_SECONDS = 30
"""dcgm-exporter reads its GPUs this often, and shows the same numbers in between."""
CAPACITY = 100.0
"""The most work that a replica can do, in percent."""
NEVER = float("inf")
_KEPT_SECONDS = 7200
"""How long a GPU's numbers are remembered."""


@dataclass(slots=True)
class SimulatedReplica:
    """One pod, on a node of its own. Its times are those at which something begins."""

    number: int
    created: float
    placed: float
    """It has a node from here on."""
    ready: float
    loading: float
    """What its GPU shows until then, in percent."""
    deleted: float = NEVER
    """From here on it is terminating."""
    gone: float = NEVER
    shown: dict[int, float] = field(default_factory=dict)
    """What the exporter collected, and when."""
    collect_seconds: int = COLLECT_SECONDS

    def works(self, now: float) -> bool:
        """Tell whether it does its share of the work."""
        return self.ready <= now < self.deleted

    def counts(self, now: float) -> bool:
        """Tell whether its owner counts it."""
        return self.created <= now < self.deleted

    def exported(self, now: float) -> float | None:
        """Return what its exporter shows at a time; None: it collected nothing then."""
        return self.shown.get(int(now // self.collect_seconds) * self.collect_seconds)

    def order(self) -> tuple[str, float]:
        """Return its place among those to delete: the last goes first."""
        return "", self.ready

    def collect(self, now: int, share: float) -> None:
        """Let the exporter look: a pod that drains still does its share."""
        if self.placed <= now < self.gone:
            self.shown[now] = share if now >= self.ready else self.loading
            self.shown.pop(now - _KEPT_SECONDS, None)


R = TypeVar("R", bound=SimulatedReplica)


@dataclass(slots=True)
class ClosedLoop(Generic[R]):
    """One workload in one cluster."""

    offered: Callable[[float], float]
    """The work there is, in percent of what a replica can do, by the seconds since the begin."""
    _: KW_ONLY
    replicas: int = 1
    """The replicas wanted."""
    start_seconds: float = 60.0
    node_seconds: float = 0.0
    """How long a pod waits for a node, where it starts."""
    loading: float = 100.0
    grace_seconds: float = 30.0
    collect_seconds: int = COLLECT_SECONDS
    """How often the exporters read their GPUs."""
    hpa: Hpa = field(default_factory=lambda: Hpa(maximum=20))
    keda: Keda = field(default_factory=Keda)
    begin: float = 0.0
    pods: list[R] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """The replicas wanted after each step."""
    overloaded_seconds: float = 0.0
    """How long there was more work than replicas could do."""
    clock: float = field(init=False)
    _asked: list[tuple[float, int]] = field(default_factory=list, init=False)
    """When the owner was told how many replicas, and how many."""
    _extra: int = field(default=0, init=False)
    """The pods beyond those wanted, in a rolling update."""

    def __post_init__(self) -> None:
        self.clock = self.begin
        self._asked.append((-NEVER, self.replicas))

    def _settle(self) -> None:
        """Begin with pods that have been Ready for an hour."""
        self.fill(self.replicas, self.begin - 3600 - self.start_seconds - self.node_seconds)
        self._collect(self.begin - 3600, self.begin)

    @property
    def replica_hours(self) -> float:
        return sum(self.sizes) * STEP_SECONDS / 3600

    def wanted(self, now: float) -> int:
        """Return how many replicas the owner was told to run, as of a time."""
        return next(replicas for since, replicas in reversed(self._asked) if since <= now)

    def resize(self, replicas: int) -> None:
        """Create and delete pods as the workload's controller would: the youngest go first."""
        counted = self._counted()
        self.fill(replicas, self.clock)
        counted.sort(key=lambda pod: pod.order(), reverse=True)
        for pod in counted[: max(0, len(counted) - replicas - self._extra)]:
            self._delete(pod)
        if replicas != self.replicas:
            self._asked.append((self.clock, replicas))
        self.replicas = replicas

    def fill(self, replicas: int, created: float) -> None:
        """Create the pods that are missing, then."""
        for _ in range(replicas + self._extra - len(self._counted())):
            self._create(created)

    def _create(self, created: float) -> None:
        raise NotImplementedError

    def _times(self, created: float) -> tuple[float, float]:
        """Return when a pod that is created then has a node, and when it is Ready."""
        placed = created + self.node_seconds
        return placed, placed + self.start_seconds

    def _delete(self, pod: R) -> None:
        pod.deleted, pod.gone = self.clock, self.clock + self.grace_seconds

    def _counted(self) -> list[R]:
        return [pod for pod in self.pods if pod.counts(self.clock)]

    def _scale(self, *, active: bool | None, metrics: Sequence[Metric], polls: bool) -> None:
        """Let the HPA act on its metrics, and if KEDA polls now, KEDA on the trigger."""
        counted = self._counted()
        ready = sum(pod.works(self.clock) for pod in counted)
        scale = Scale(spec=self.replicas, status=len(counted), ready=ready)
        wanted = self.hpa.sync(self.clock, scale, metrics)
        if polls and (self.clock - self.begin) % (2 * STEP_SECONDS) == 0:
            wanted = self.keda.poll(self.clock, wanted, [active])
        self.resize(wanted)

    def _collect(self, since: float, until: float) -> None:
        """Let the exporters read their GPUs, each time that they do until then."""
        every = self.collect_seconds
        for number in range(math.ceil(since / every), math.ceil(until / every)):
            now = number * every
            working = self._working(now)
            self._read(now, working)
            if now >= self.begin and self.offered(now - self.begin) > CAPACITY * len(working):
                self.overloaded_seconds += every

    def _read(self, now: int, working: Sequence[R]) -> None:
        """Let the exporters read how busy each pod is; `working` are those that share the work."""
        work = self.offered(now - self.begin)
        for pod in self.pods:
            pod.collect(now, min(CAPACITY, work / max(1, len(working))))

    def _working(self, now: float) -> list[R]:
        return [pod for pod in self.pods if pod.works(now)]
