"""The truth: workloads, their pods, and the load of each pod's GPU at any time. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from testbed import triggers
from tests.support import api_server, kube_state
from tests.support.kube_state import KubePod

NODES = 8
WORKLOADS = 50
NAMESPACES = ("team-a", "team-b", "team-c", "team-d")
SWING_SECONDS = 600
"""A workload that swings is busy for so long, then idle for so long."""
LOOK_BACK_SECONDS = 330.0
"""The window, `maxAge` and the delays of scrapes and steps: what an answer may still be about."""
TOLERANCE = 0.02
"""The share by which a sum of floats, cut to thousandths, may differ from the truth."""
_WATTS_IDLE, _WATTS_PER_PERCENT = 70.0, 6.3
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment of pods with one GPU each, all under the same load."""

    number: int

    @property
    def namespace(self) -> str:
        return NAMESPACES[self.number % len(NAMESPACES)]

    @property
    def name(self) -> str:
        return f"model-{self.number}"

    @property
    def pods(self) -> Sequence[str]:
        count = 1 + self.number % 4
        return [f"{self.name}-7b6667bd9-{_ALPHABET[pod] * 5}" for pod in range(count)]

    def node(self, pod: int) -> int:
        return (self.number + pod) % NODES

    def percent(self, at: float) -> float:
        if self.number % 5 == 0:
            return 0.0
        busy = 20.0 + self.number * 7 % 75  # Never full: a full one is answered with more.
        swings = self.number % 5 == 1
        half = (at + self.number * 37) // SWING_SECONDS
        return 0.0 if swings and half % 2 else busy

    def watts(self, at: float) -> float:
        return _WATTS_IDLE + _WATTS_PER_PERCENT * self.percent(at)

    def waiting(self, at: float) -> float:
        return 10 * self.percent(at)


KINDS = ("utilization", "average", "power", "query", "demand", "alone", "direct")
_OF_DEMAND = ("demand", "alone")


@dataclass(frozen=True, slots=True)
class Trigger:
    """One trigger of a ScaledObject on a workload."""

    workload: Workload
    kind: str

    @property
    def metric_name(self) -> str:
        return {
            "power": "gpu-power",
            "query": "gpu-number",
            "demand": "gpu-demand",
            "alone": "gpu-demand",
        }.get(self.kind, "gpu-utilization")

    @property
    def metadata(self) -> dict[str, str]:
        name, namespace = self.workload.name, self.workload.namespace
        common = {"workload": name, "threshold": "70"}
        demand = {
            "demandQuery": f'sum(soak_waiting{{workload="{name}"}})',
            "demandThreshold": "100",
        }
        if self.kind == "alone":
            return common | demand | {"threshold": ""}
        return (
            common
            | {
                "utilization": {},
                "average": {"aggregation": "average"},
                "power": {"signal": "power", "threshold": "400", "activationThreshold": "100"},
                "query": {
                    "query": f'DCGM_FI_DEV_GPU_UTIL{{exported_namespace="{namespace}"}}',
                    "activationThreshold": "5",
                },
                "demand": demand,
                "direct": {"source": "direct"},
            }[self.kind]
        )

    def reference(self) -> pb.ScaledObjectRef:
        name, namespace = f"{self.workload.name}-{self.kind}", self.workload.namespace
        return triggers.reference(name, namespace, **self.metadata)

    def request(self) -> pb.GetMetricsRequest:
        return triggers.request(self.reference(), self.metric_name)

    def value(self, at: float) -> float:
        """The number that is the truth at one instant."""
        count = len(self.workload.pods)
        match self.kind:
            case "average":
                return self.workload.percent(at)
            case "power":
                return self.workload.watts(at) * count
            case "demand" | "alone":
                return self.workload.waiting(at)
            case _:
                return self.workload.percent(at) * count

    def bounds(self, at: float) -> tuple[float, float]:
        """Return the least and the most that a number may be that is answered at this time.

        It is the truth of some instant, or between two of them.
        """
        values = [self.value(at - ago) for ago in _instants()]
        return min(values) * (1 - TOLERANCE), max(values) * (1 + TOLERANCE)

    def keeps(self, number: float) -> bool:
        """Tell whether a number asks for no fewer replicas than there are.

        While some pods cannot be seen, the sum of the others is a lower bound of the truth: it may
        be answered if it lowers nothing. A lone replica has no others, and a demand no pods.
        """
        replicas = len(self.workload.pods)
        if replicas == 1 or self.kind in _OF_DEMAND:
            return False
        total = number * replicas if self.kind == "average" else number
        return total > (replicas - 1) * float(self.metadata["threshold"])

    def is_busy(self, at: float) -> bool:
        """Tell whether it was busy all the time that an answer may be about."""
        return all(self.workload.percent(at - ago) > 0 for ago in _instants())


def asked() -> list[Trigger]:
    """Return all triggers: four of each workload, of every kind."""
    return [
        Trigger(Workload(number), KINDS[(number + one) % len(KINDS)])
        for number in range(WORKLOADS)
        for one in range(4)
    ]


def exporter_page(node: int, at: float) -> Iterator[str]:
    """Yield the lines of one node's dcgm-exporter."""
    for workload in map(Workload, range(WORKLOADS)):
        for number, pod in enumerate(workload.pods):
            if workload.node(number) == node:
                labels = (
                    f'gpu="{workload.number}",UUID="GPU-{pod}",'
                    f'namespace="{workload.namespace}",pod="{pod}",container="main"'
                )
                yield f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {workload.percent(at):g}"
                yield f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} {workload.watts(at):g}"


def objects() -> dict[str, list[api_server.Json]]:
    """Return what the Kubernetes API lists, by its path."""
    found: dict[str, list[api_server.Json]] = {path: [] for path in api_server.PATHS}
    for workload in map(Workload, range(WORKLOADS)):
        name, here = f"{workload.name}-7b6667bd9", {"namespace": workload.namespace}
        owned = api_server.metadata(name, ("Deployment", workload.name), **here)
        found[api_server.REPLICA_SETS].append({"metadata": owned})
        for pod in workload.pods:
            listed = api_server.pod(pod, ("ReplicaSet", name))
            listed["metadata"] |= here
            found[api_server.PODS].append(listed)
    return found


def cluster_page(at: float) -> Iterator[str]:
    """Yield the lines of kube-state-metrics, and those of a router with the waiting requests."""
    for workload in map(Workload, range(WORKLOADS)):
        here, name, owner = workload.namespace, workload.name, f"{workload.name}-7b6667bd9"
        yield from kube_state.page(
            at,
            [
                kube_state.link("ReplicaSet", owner, ("Deployment", name), here),
                kube_state.replicas(len(workload.pods), name, here),
                *(
                    KubePod(name=pod, owner=("ReplicaSet", owner), namespace=here)
                    for pod in workload.pods
                ),
            ],
        )
        waits = f'namespace="{here}",workload="{name}"'
        yield f"soak_waiting{{{waits}}} {workload.waiting(at):g}"


def _instants() -> Iterator[float]:
    step = 5.0
    return (number * step for number in range(int(LOOK_BACK_SECONDS / step) + 1))
