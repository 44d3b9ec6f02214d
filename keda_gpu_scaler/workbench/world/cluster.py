"""The simulated GPUs: which pod holds which of them, and how busy each is.

Pure: nodes, pods and the time are arguments. A pod holds its GPUs from the first list that contains
it to the last one, and a GPU stays as long as its node. A requested change is checked before
anything is changed: a mistake is a ValueError that names the field and what was expected.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

import pydantic

from keda_gpu_scaler.spec.workload import is_name, is_namespace

_NODE = "gpu-node-0"
"""The node of made-up pods. It has a GPU without a pod, as an exporter always shows one."""
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes makes names of."""
_TEMPLATE_HASH = "7b6667bd9"
_RANDOM_LENGTH = 5
_BASE_LENGTH = 58
"""A generated name has at most 63 characters, and 5 of them are random."""
MODEL = "NVIDIA H100 80GB HBM3"
MEMORY_MIB = 81559
_MEMORY_IN_USE = 0.6
_WORKLOAD = re.compile(
    r"(?P<namespace>[^/=]+)/(?P<name>[^/=]+)"
    r"=(?P<replicas>\d+):(?P<load>\d+(\.\d+)?)(:(?P<gpus>\d+))?"
)


class WorkloadKey(NamedTuple):
    """The namespace and the name of a workload."""

    namespace: str
    name: str

    @classmethod
    def checked(cls, namespace: str, name: str) -> "WorkloadKey":
        """Return the key; ValueError for a name that Kubernetes would not accept."""
        if not is_namespace(namespace):
            raise ValueError(f"namespace {namespace!r} is no Kubernetes namespace name")
        if not is_name(name):
            raise ValueError(f"name {name!r} is no Kubernetes object name")
        return cls(namespace, name)


class Wanted(pydantic.BaseModel):
    """What is wanted of a workload, within what one page can show."""

    model_config = pydantic.ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False
    )

    replicas: int = pydantic.Field(default=0, ge=0, le=1000)
    load: float = pydantic.Field(default=0, ge=0, le=10_000_000)
    """Offered load in percent of one GPU: 250 keeps two and a half GPUs busy."""
    gpus_per_pod: int = pydantic.Field(default=1, ge=1, le=16)
    startup_seconds: float = pydantic.Field(default=0, ge=0, le=86_400)
    """How long until a new pod is Ready."""
    loading_percent: float = pydantic.Field(default=0, ge=0, le=100)
    """The load of a pod's GPUs until it is Ready; some models load at 100 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPod:
    """A pod with GPUs that is scheduled to a node."""

    uid: str
    """Tells two pods of one name apart, which a StatefulSet has one after the other."""
    name: str
    workload: WorkloadKey
    node: str
    gpus: int
    container: str
    ready_at: float
    terminating: bool = False

    def is_ready(self, now: float) -> bool:
        return now >= self.ready_at and not self.terminating


@dataclass(frozen=True, slots=True)
class SimulatedGpu:
    """One GPU at one instant."""

    host: str
    index: int
    percent: float
    pod: SimulatedPod | None
    """None: no pod holds it."""

    @property
    def uuid(self) -> str:
        return f"GPU-{self.host}-{self.index}"

    @property
    def memory_used_mib(self) -> int:
        """Used memory: a model stays in memory as long as its pod exists, busy or not."""
        return int(MEMORY_MIB * _MEMORY_IN_USE) if self.pod else 0

    @property
    def celsius(self) -> int:
        return round(30 + 0.4 * self.percent)

    @property
    def watts(self) -> float:
        return round(70 + 6.3 * self.percent, 3)


class Cluster:
    """The nodes and pods at the last list, and the load offered to workloads."""

    changeable: AbstractSet[str] = frozenset({"load", "loading_percent"})
    """The fields of `Wanted` that a request may change: pods are those of the list."""

    def __init__(self) -> None:
        self.nodes: dict[str, list[str | None]] = {}
        """The uid of the pod that holds each GPU, by the name of the node."""
        self.pods: dict[str, SimulatedPod] = {}
        self.wanted: dict[WorkloadKey, Wanted] = {}

    @property
    def workloads(self) -> set[WorkloadKey]:
        return {pod.workload for pod in self.pods.values()} | self.wanted.keys()

    def show(self, nodes: Mapping[str, int], pods: Iterable[SimulatedPod]) -> None:
        """Show nodes with so many GPUs, and those pods on them."""
        self.pods = {pod.uid: pod for pod in pods if pod.node in nodes}
        holders_by_node: dict[str, list[str | None]] = {}
        for name, gpus in nodes.items():
            # A GPU of a pod that is gone is free again; a GPU itself never goes.
            holders = [uid if uid in self.pods else None for uid in self.nodes.get(name, [])]
            holders_by_node[name] = holders + [None] * (gpus - len(holders))
        self.nodes = holders_by_node
        placed = {uid for holders in self.nodes.values() for uid in holders}
        for pod in self.pods.values():
            if pod.uid in placed:
                continue
            # It gets the first free GPUs, and new ones of the node if too few are free.
            holders = self.nodes[pod.node]
            free = [index for index, uid in enumerate(holders) if uid is None][: pod.gpus]
            for index in free:
                holders[index] = pod.uid
            holders += [pod.uid] * (pod.gpus - len(free))

    def wanted_of(self, key: WorkloadKey) -> Wanted:
        return self.wanted.get(key, Wanted())

    def changed(self, key: WorkloadKey, body: bytes) -> Wanted:
        """Read what is wanted of a workload out of JSON; fields that it leaves out stay."""
        try:
            requested = Wanted.model_validate_json(body)
        except pydantic.ValidationError as error:
            raise ValueError(_sentence(error)) from error
        if unchangeable := sorted(requested.model_fields_set - self.changeable):
            changeable = ", ".join(sorted(self.changeable))
            what = f"not up to the simulator here; only {changeable} can change"
            raise ValueError(f"{', '.join(unchangeable)}: {what}")
        return self.wanted_of(key).model_copy(update=requested.model_dump(exclude_unset=True))

    def put(self, key: WorkloadKey, wanted: Wanted, now: float) -> None:
        """Offer load to a workload, whether or not it has pods."""
        del now
        self.wanted[key] = wanted

    def percents(self, now: float) -> dict[str, float]:
        """Return the load of each GPU of a pod, by the pod's uid.

        The offered load spreads evenly over the GPUs of the Ready pods; load above 100 % of a GPU
        waits, as on a real one.
        """
        ready_gpus: Counter[WorkloadKey] = Counter()
        for pod in self.pods.values():
            ready_gpus[pod.workload] += pod.gpus if pod.is_ready(now) else 0
        percents: dict[str, float] = {}
        for uid, pod in self.pods.items():
            wanted = self.wanted_of(pod.workload)
            if pod.is_ready(now):
                percents[uid] = min(100, wanted.load / ready_gpus[pod.workload])
            else:
                percents[uid] = 0 if pod.terminating else wanted.loading_percent
        return percents

    def gpus(self, now: float) -> Iterator[SimulatedGpu]:
        percents = self.percents(now)
        for node, holders in self.nodes.items():
            for index, uid in enumerate(holders):
                pod = None if uid is None else self.pods[uid]
                yield SimulatedGpu(node, index, 0 if uid is None else percents[uid], pod)


class MadeUp(Cluster):
    """Pods that come and go as their replicas are set, named as those of a Deployment.

    The newest go first. Another number of GPUs per pod replaces all pods, as a new template does.
    """

    changeable = Wanted.model_fields.keys()

    def __init__(self) -> None:
        super().__init__()
        self._serials = itertools.count(1)
        self.show({_NODE: 1}, [])

    def put(self, key: WorkloadKey, wanted: Wanted, now: float) -> None:
        super().put(key, wanted, now)
        own = [pod for pod in self.pods.values() if pod.workload == key]
        others = [pod for pod in self.pods.values() if pod.workload != key]
        kept = [pod for pod in own if pod.gpus == wanted.gpus_per_pod][: wanted.replicas]
        for _ in range(wanted.replicas - len(kept)):
            name = pod_name(key.name, next(self._serials))
            pod = SimulatedPod(
                uid=name,
                name=name,
                workload=key,
                node=_NODE,
                gpus=wanted.gpus_per_pod,
                container=key.name,
                ready_at=now + wanted.startup_seconds,
            )
            kept.append(pod)
        self.show({_NODE: 1}, [*others, *kept])


def pod_name(workload: str, serial: int) -> str:
    """Name a Deployment's pod; the end of a long name is cut, as in Kubernetes."""
    suffix = (_ALPHABET[serial // 27**place % 27] for place in range(_RANDOM_LENGTH))
    return f"{workload}-{_TEMPLATE_HASH}-"[:_BASE_LENGTH] + "".join(suffix)


def read_workload(text: str) -> tuple[WorkloadKey, Wanted]:
    parts = _WORKLOAD.fullmatch(text)
    if parts is None:
        raise ValueError(f"{text!r} is not namespace/name=replicas:load[:gpus]")
    fields = {
        "replicas": int(parts["replicas"]),
        "load": float(parts["load"]),
        "gpus_per_pod": int(parts["gpus"] or 1),
    }
    try:
        return WorkloadKey.checked(parts["namespace"], parts["name"]), Wanted.model_validate(fields)
    except pydantic.ValidationError as error:
        raise ValueError(_sentence(error)) from error


def _sentence(error: pydantic.ValidationError) -> str:
    mistakes = (
        f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}" for mistake in error.errors()
    )
    return "; ".join(mistake.removeprefix(": ") for mistake in mistakes)
