"""The simulated cluster: workloads, their pods, and how busy each pod's GPUs are.

Pure: the time is an argument. It knows nothing about metrics or HTTP. Pods are created at once.
Scaling down deletes the newest pod first; a change of the pod template replaces all pods. Pods are
named as in Kubernetes: apiserver `storage/names/generate.go`, `util/rand`,
`pkg/controller/controller_utils.go`.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import NamedTuple, Protocol

from keda_gpu_scaler.simulator import devices

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_RANDOM_LENGTH = 5
_BASE_LENGTH = 58
"""A generated name has at most 63 characters, and 5 of them are random."""


def template_hash(template: str) -> str:
    """Return the pod-template-hash: FNV-32a in decimal, each digit mapped to the safe alphabet."""
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(_fnv_32a(template)))


def _fnv_32a(text: str) -> int:
    number = 2166136261
    for byte in text.encode():
        number = (number ^ byte) * 16777619 % 2**32
    return number


def deployment_pod(namespace: str, name: str, template: str, serial: int) -> str:
    """Name a Deployment's pod; a long name loses its dash and its hash, as in Kubernetes."""
    base = f"{name}-{template_hash(f'{namespace}/{name}/{template}')}-"
    return base[:_BASE_LENGTH] + _suffix(f"{namespace}/{base}{serial}")


def _suffix(seed: str) -> str:
    """Return five characters from a seed; Kubernetes draws them at random."""
    digest = hashlib.sha256(seed.encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_RANDOM_LENGTH])


def stateful_set_pod(name: str, ordinal: int) -> str:
    """Name a StatefulSet's pod by its ordinal."""
    return f"{name}-{ordinal}"


def uuid(seed: str) -> str:
    """Return a stable GPU UUID in NVIDIA's form."""
    text = hashlib.sha256(seed.encode()).hexdigest()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"


MAX_DEVICES = 100_000
"""Room for ten thousand pods with eight GPUs each; the page of more would exhaust memory."""


class Kind(StrEnum):
    """The kinds of owners with known rules for the names of their pods."""

    DEPLOYMENT = "deployment"
    STATEFULSET = "statefulset"


class Key(NamedTuple):
    """The namespace and the name of a workload."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The wanted state of a workload."""

    kind: Kind = Kind.DEPLOYMENT
    replicas: int = 0
    load: float = 0
    """Offered load in percent of one device: 250 keeps two and a half devices busy."""
    gpus_per_pod: int = 1
    startup_seconds: float = 0
    loading_percent: float = 0
    """The load of a pod's devices until it is Ready; some models load at 100 %."""
    draining_percent: float = 0
    """The load of the devices of a deleted pod while it finishes its work."""
    completed_percent: float | None = None
    """The load of the devices of a completed pod; None: the exporter no longer names the pod."""

    @property
    def template(self) -> str:
        """Identifies the pod template; when it changes, all pods are replaced."""
        return f"{self.kind}/{self.gpus_per_pod}"

    @property
    def device_count(self) -> int:
        """How many devices all replicas hold."""
        return self.replicas * self.gpus_per_pod


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod and what it holds."""

    name: str
    devices: tuple[devices.Device, ...]
    ready_at: float
    container: str = ""
    """The container that holds the devices; empty: it has the name of the workload."""
    terminating: bool = False
    """A terminating pod is shown until it is gone, and takes no load."""
    completed: bool = False
    """The pod has succeeded or failed, and the exporter still names it at its devices."""

    def is_ready(self, now: float) -> bool:
        """Tell whether the pod takes load."""
        return now >= self.ready_at and not self.terminating and not self.completed


@dataclass(slots=True)
class Workload:
    """The wanted state of a workload, and its pods by name, oldest first."""

    key: Key
    wanted: Wanted = field(default_factory=Wanted)
    pods: dict[str, Pod] = field(default_factory=dict)
    created: int = 0

    def percents(self, now: float) -> Iterator[tuple[Pod, float]]:
        """Yield each pod with the load of each of its devices.

        The offered load spreads evenly over the devices of the Ready pods; load above 100 % of a
        device waits, as on a real one.
        """
        ready = sum(len(pod.devices) for pod in self.pods.values() if pod.is_ready(now))
        share = min(100, self.wanted.load / ready) if ready else 0
        for pod in self.pods.values():
            yield pod, share if pod.is_ready(now) else self._percent_without_load(pod)

    def _percent_without_load(self, pod: Pod) -> float:
        if pod.completed:
            return self.wanted.completed_percent or 0
        return self.wanted.draining_percent if pod.terminating else self.wanted.loading_percent

    def next_name(self) -> str:
        """Return the name of the next pod."""
        if self.wanted.kind is Kind.STATEFULSET:
            return stateful_set_pod(self.key.name, len(self.pods))
        while (name := self._draw()) in self.pods:
            pass  # two draws of 5 characters may be equal; Kubernetes tries again too
        return name

    def _draw(self) -> str:
        self.created += 1
        return deployment_pod(*self.key, self.wanted.template, self.created)


class Simulated(Protocol):
    """What can be shown and changed: a simulated cluster, or the mirror of a real one."""

    nodes: list[devices.Node]
    workloads: dict[Key, Workload]

    @property
    def changeable(self) -> frozenset[str]:
        """The fields of `Wanted` that a request may change."""

    def put(self, key: Key, wanted: Wanted, now: float) -> Workload:
        """Change a workload to the wanted state; ValueError if that is not possible."""

    def delete(self, key: Key) -> None:
        """Delete a workload; KeyError if there is none of this name."""


class Cluster:
    """Nodes with GPUs, and the workloads that hold them."""

    changeable = frozenset(each.name for each in fields(Wanted)) - {
        "draining_percent",
        "completed_percent",
    }
    """Deleted pods are gone at once, and pods never complete."""

    def __init__(self, nodes: int = 1, spare_gpus: int = 0) -> None:
        """Build nodes with `spare_gpus` GPUs each before the first pod."""
        self.nodes = [devices.Node(index, spare_gpus) for index in range(nodes)]
        self.workloads: dict[Key, Workload] = {}

    def put(self, key: Key, wanted: Wanted, now: float) -> Workload:
        """Change a workload to the wanted state; ValueError if there is no room."""
        self._require_room(key, wanted)
        workload = self.workloads.setdefault(key, Workload(key))
        if workload.wanted.template != wanted.template:
            self._shrink(workload, 0)
        workload.wanted = wanted
        self._shrink(workload, wanted.replicas)
        self._grow(workload, now)
        return workload

    def delete(self, key: Key) -> None:
        """Delete a workload and its pods; KeyError if there is none of this name."""
        self._shrink(self.workloads[key], 0)
        del self.workloads[key]

    def _require_room(self, key: Key, wanted: Wanted) -> None:
        others = (other for other in self.workloads.values() if other.key != key)
        count = sum(other.wanted.device_count for other in others) + wanted.device_count
        if count > MAX_DEVICES:
            raise ValueError(f"the pods would hold {count} devices, more than {MAX_DEVICES}")

    def _grow(self, workload: Workload, now: float) -> None:
        while len(workload.pods) < workload.wanted.replicas:
            pod = self._pod(workload, now)
            workload.pods[pod.name] = pod

    def _pod(self, workload: Workload, now: float) -> Pod:
        node = min(self.nodes, key=lambda node: node.taken)
        held = node.take(workload.wanted.gpus_per_pod)
        return Pod(workload.next_name(), held, now + workload.wanted.startup_seconds)

    def _shrink(self, workload: Workload, replicas: int) -> None:
        while len(workload.pods) > replicas:
            _, pod = workload.pods.popitem()
            self.nodes[pod.devices[0].node].give_back(pod.devices)
