"""What a Prometheus has stored of a made-up cluster: its exporters, and kube-state-metrics."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from keda_gpu_scaler.spec.spec import Signal
from testbed.series import Series, stored
from tests.support import kube_state
from tests.support.clusters import Cluster, Copy, Gpu, Node, Owner, Pod
from tests.support.kube_state import KubePod, Listed

_EXPORTERS = ("DaemonSet", "the-exporter")


def history(cluster: Cluster, begin: float, end: float) -> Iterator[Series]:
    for index, node in enumerate(cluster.nodes):
        pods = [pod for pod in cluster.pods if pod.node == index]
        for copy in node.copies:
            yield from _Job(cluster, index, copy, (begin, end)).series(pods)
    if cluster.has_state_metrics:
        yield from kube_state.history(end, _listed(cluster, begin - end))


@dataclass(frozen=True, slots=True)
class _Job:
    """One exporter of one node, as one job scrapes it."""

    cluster: Cluster
    index: int
    copy: Copy
    between: tuple[float, float]

    @property
    def _node(self) -> Node:
        return self.cluster.nodes[self.index]

    @property
    def _times(self) -> list[float]:
        phase, interval = self.copy.phase, self._node.interval
        begin, end = (math.floor((time - phase) / interval) for time in self.between)
        return [sample * interval + phase for sample in range(begin + 1, end + 1)]

    @property
    def _exporter(self) -> dict[str, str]:
        """Service discovery's labels: where the exporter is, and its own pod."""
        namespace, name = self._node.exporter
        target = {
            "job": f"{self.copy.job}-of-{self.cluster.number}",
            "instance": f"node-{self.index}.cluster-{self.cluster.number}:9400",
            "namespace": self.cluster.namespace(namespace),
            "pod": name,
        }
        replica = {"prometheus_replica": self.copy.replica} if self.copy.replica else {}
        return target | replica

    def series(self, pods: list[Pod]) -> Iterator[Series]:
        """Yield the exporter's health, a GPU without a pod, and the GPUs of pods."""
        yield self._constant("up", self._exporter, 1)
        idle = Gpu(f"idle-{self._exporter['instance']}", 99, "", 50)
        yield from self._gpu(self._exporter, idle)
        for pod in pods:
            for gpu in pod.gpus:
                yield from self._gpu(self._labels(pod), gpu)

    def _constant(self, metric: str, labels: Mapping[str, str], value: float) -> Series:
        return Series(metric, labels, [(time, value) for time in self._times])

    def _labels(self, pod: Pod) -> dict[str, str]:
        namespace, exporter = self.cluster.namespace(pod.workload.namespace), self._exporter
        if self.copy.format.owner is not None:
            of_namespace, of_pod = self.copy.format.owner
            return {**exporter, of_namespace: namespace, of_pod: pod.name}
        shown = {"namespace": namespace, "pod": pod.name}
        return stored(shown, exporter, honor_labels=self.copy.honor_labels)

    def _gpu(self, labels: Mapping[str, str], gpu: Gpu) -> Iterator[Series]:
        page, signal = self.copy.format, self.cluster.signal
        where = {**labels, page.board: gpu.board, page.number: str(gpu.number)}
        if page.slice is not None and gpu.part:
            where[page.slice] = gpu.part
        for asked in dict.fromkeys((signal, Signal.UTILIZATION)):
            for shown in page.writes[asked](gpu.load):
                yield self._constant(shown.metric, where, shown.value)


def _listed(cluster: Cluster, begin: float) -> Iterator[KubePod | Listed]:
    """Yield what kube-state-metrics says of all pods, those of the exporters among them."""
    links: set[tuple[Owner, Owner, str]] = set()
    for pod in cluster.pods:
        namespace = cluster.namespace(pod.workload.namespace)
        owner, *above = pod.owners
        yield KubePod(name=pod.name, owner=owner, namespace=namespace, begin=begin)
        if owner[0] in {"ReplicaSet", "Job"}:
            links |= {(owner, other, namespace) for other in above or [("", "")]}
    for (kind, name), owner, namespace in sorted(links):
        yield kube_state.link(kind, name, owner, namespace)
    for index, name in dict.fromkeys(node.exporter for node in cluster.nodes):
        namespace = cluster.namespace(index)
        yield KubePod(name=name, owner=_EXPORTERS, namespace=namespace, begin=begin, asks_gpu=False)
