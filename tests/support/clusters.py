"""Clusters of GPU workloads that Hypothesis makes up, with the number that is right for each.

A cluster knows every pod's owner and every GPU's load, which stays the same, and says itself what
a trigger has to answer: without the product, and without a Prometheus.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, quantiles

from keda_gpu_scaler.spec.spec import Signal
from keda_gpu_scaler.spec.workload import Kind
from tests.support import naming
from tests.support.pages import PAGES, Load, Page

Owner = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU or one slice of it."""

    board: str
    number: int
    part: str
    percent: int

    @property
    def load(self) -> Load:
        return Load(self.percent, bool(self.part))


@dataclass(frozen=True, slots=True)
class Copy:
    """One exporter on a node, as one scrape job of one Prometheus stores it."""

    page: str
    job: str
    honor_labels: bool
    phase: int
    replica: str = ""
    """Which Prometheus of several, where their series meet behind one API."""

    @property
    def format(self) -> Page:
        return PAGES[self.page]


@dataclass(frozen=True, slots=True)
class Node:
    """A node with its exporter, which may be stored several times."""

    interval: int
    copies: tuple[Copy, ...]
    exporter: tuple[int, str]
    """Namespace and name of the exporter's own pod."""

    @property
    def preferred(self) -> list[Copy]:
        """The copies of the exporter that counts."""
        first = min(copy.format.rank for copy in self.copies)
        return [copy for copy in self.copies if copy.format.rank == first]


@dataclass(frozen=True, slots=True)
class Workload:
    """An owner of pods."""

    namespace: int
    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    def has(self, pod: "Pod", *, known: bool) -> bool:
        """Tell whether a pod is its own: by owners where they are `known`, or else by its name."""
        if pod.workload.namespace != self.namespace:
            return False
        if not known or self.kind in {Kind.KNATIVE_SERVICE, Kind.INFERENCE_SERVICE}:
            return naming.could_be(self.kind, self.name, pod.name)
        if self.kind is not Kind.LEADER_WORKER_SET:
            return controllers(self)[-1] in pod.owners
        sets = (name for kind, name in pod.owners if kind == "StatefulSet")
        groups = (name.removeprefix(self.name) for name in sets)
        return any(not group or (group[0] == "-" and group[1:].isdecimal()) for group in groups)

    def replica(self, pod: "Pod") -> str:
        """Return what a pod counts as: where there are groups, each is one replica."""
        if self.kind not in {Kind.LEADER_WORKER_SET, Kind.MODEL_SERVING}:
            return pod.name
        return pod.name.removeprefix(f"{self.name}-").partition("-")[0]


_OWNERS: Mapping[Kind, Sequence[Owner]] = {
    Kind.DEPLOYMENT: [("ReplicaSet", "-7b6667bd9"), ("Deployment", "")],
    Kind.ROLLOUT: [("ReplicaSet", "-6c5555bc8"), ("Rollout", "")],
    Kind.REPLICA_SET: [("ReplicaSet", "")],
    Kind.STATEFUL_SET: [("StatefulSet", "")],
    Kind.LEADER_WORKER_SET: [("StatefulSet", "")],
    Kind.MODEL_SERVING: [("ModelServing", "")],
    Kind.POD_CLIQUE: [("PodClique", "")],
    Kind.DAEMON_SET: [("DaemonSet", "")],
    Kind.JOB: [("Job", "")],
    Kind.CRON_JOB: [("Job", "-29123456"), ("CronJob", "")],
    Kind.KNATIVE_SERVICE: [
        ("ReplicaSet", "-00001-deployment-5d4444bb7"),
        ("Deployment", "-00001-deployment"),
    ],
    Kind.INFERENCE_SERVICE: [
        ("ReplicaSet", "-predictor-9f8888dd6"),
        ("Deployment", "-predictor"),
    ],
}
"""What controls pods, and what controls that: kinds, and what follows the workload's name."""


def controllers(workload: Workload) -> tuple[Owner, ...]:
    """Return what controls a workload's pods, and what controls that."""
    return tuple((kind, workload.name + suffix) for kind, suffix in _OWNERS[workload.kind])


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod on one node."""

    workload: Workload
    name: str
    node: int
    gpus: tuple[Gpu, ...]

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Its controller, and that one's own."""
        _, _, worker = self.name.removeprefix(f"{self.workload.name}-").partition("-")
        if self.workload.kind is Kind.LEADER_WORKER_SET and worker:
            return (("StatefulSet", self.name.removesuffix(f"-{worker}")),)
        return controllers(self.workload)


_WHOLE: Mapping[str, Callable[[list[float]], float]] = {"average": fmean, "max": max, "sum": sum}


@dataclass(frozen=True, slots=True)
class Question:
    """One trigger's keys."""

    workload: Workload
    aggregation: str
    gpu_aggregation: str
    window: int | None
    """In seconds; None: not given."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes, pods and what is asked about them."""

    signal: Signal
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    questions: tuple[Question, ...]
    has_state_metrics: bool
    number: int = field(default=0, compare=False)

    def namespace(self, index: int) -> str:
        """Return the name of a namespace, which is this cluster's alone."""
        return f"cluster-{self.number}-{'ab'[index]}"

    def pods_of(self, workload: Workload) -> list[Pod]:
        known = self.has_state_metrics
        return [pod for pod in self.pods if workload.has(pod, known=known)]

    def can_tell(self, workload: Workload) -> bool:
        """Tell whether its owners and its names agree on a workload's pods.

        A StatefulSet called `a-2` is taken for a group's of the LeaderWorkerSet `a`.
        """
        named = (
            naming.could_be(workload.kind, workload.name, pod.name)
            for pod in self.pods_of(workload)
        )
        return all(named)

    def value(self, question: Question) -> float:
        """Return what the trigger has to answer."""
        replicas: dict[str, list[float]] = defaultdict(list)
        for pod in self.pods_of(question.workload):
            loads = self._gpus(pod).values()
            replicas[question.workload.replica(pod)].append(
                _WHOLE[question.gpu_aggregation](list(loads))
            )
        return _aggregated(question.aggregation, [fmean(one) for one in replicas.values()])

    def _gpus(self, pod: Pod) -> dict[tuple[str, str], float]:
        """Return the number of each GPU; power is the board's, whatever part of it."""
        written = self.nodes[pod.node].preferred[0].format
        is_whole = self.signal is Signal.POWER
        numbers: dict[tuple[str, str], float] = {}
        for gpu in pod.gpus:
            key = gpu.board, "" if is_whole else gpu.part
            number = gpu.load.worth(self.signal, reserved=written.reserved)
            numbers[key] = max(number, numbers.get(key, number))
        return numbers


def _aggregated(aggregation: str, loads: list[float]) -> float:
    if aggregation == "average":
        return fmean(loads)
    if aggregation == "max":
        return max(loads) * len(loads)
    if aggregation == "p95" and len(loads) > 1:
        return max(sum(loads), quantiles(loads, n=20, method="inclusive")[-1] * len(loads))
    return sum(loads)
