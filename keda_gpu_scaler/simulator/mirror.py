"""The nodes and pods of a real cluster, with a simulated load.

Pure: nodes and pods are arguments. A pod holds its GPUs from the first list that contains it to the
last one, and a GPU stays as long as its node. A completed pod holds nothing, unless the exporter is
set to go on naming it.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

from keda_gpu_scaler.simulator import cluster, devices


@dataclass(frozen=True, slots=True)
class Node:
    """A node with allocatable GPUs."""

    name: str
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod with GPUs that is scheduled to a node."""

    uid: str
    """Tells two pods of one name apart, which a StatefulSet has one after the other."""
    name: str
    workload: cluster.Key
    node: str
    gpus: int
    container: str
    ready: bool
    terminating: bool
    completed: bool = False
    """The pod has succeeded or failed."""


class Mirror:
    """The nodes and pods of a real cluster at the last list, and the load offered to them."""

    changeable = frozenset({"load", "loading_percent", "draining_percent", "completed_percent"})

    def __init__(self) -> None:
        """Start empty: nothing is shown until the first list."""
        self.nodes: list[devices.Node] = []
        self.workloads: dict[cluster.Key, cluster.Workload] = {}
        self._offered: dict[cluster.Key, cluster.Wanted] = {}
        self._held: dict[str, tuple[devices.Node, tuple[devices.Device, ...]]] = {}
        self._indexes = itertools.count()

    def show(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
        """Show these nodes, and those of these pods that are on them."""
        self._show_nodes(nodes)
        homes = {node.host: node for node in self.nodes}
        shown = [pod for pod in pods if pod.node in homes and self._is_named(pod)]
        self._give_back(pod.uid for pod in shown)
        self._take(shown, homes)
        self._show_workloads(shown)

    def put(self, key: cluster.Key, wanted: cluster.Wanted, now: float) -> cluster.Workload:
        """Offer load to a workload, whether or not it has pods."""
        del now
        self._offered[key] = wanted
        workload = self.workloads.setdefault(key, cluster.Workload(key))
        workload.wanted = wanted
        return workload

    def delete(self, key: cluster.Key) -> None:
        """Stop offering load. Existing pods stay; KeyError if there is no such workload."""
        workload = self.workloads[key]
        self._offered.pop(key, None)
        workload.wanted = cluster.Wanted()
        if not workload.pods:
            del self.workloads[key]

    def _show_nodes(self, nodes: Iterable[Node]) -> None:
        known = {node.host: node for node in self.nodes}
        self.nodes = []
        for each in nodes:
            node = known.get(each.name) or devices.Node(next(self._indexes), name=each.name)
            node.fill(each.gpus)
            self.nodes.append(node)

    def _is_named(self, pod: Pod) -> bool:
        """Tell whether the exporter names this pod."""
        offered = self._offered.get(pod.workload, cluster.Wanted())
        return not pod.completed or offered.completed_percent is not None

    def _give_back(self, living: Iterable[str]) -> None:
        for uid in self._held.keys() - set(living):
            node, held = self._held.pop(uid)
            node.give_back(held)

    def _take(self, pods: Iterable[Pod], homes: dict[str, devices.Node]) -> None:
        for pod in pods:
            if pod.uid not in self._held:
                node = homes[pod.node]
                self._held[pod.uid] = node, node.take(pod.gpus)

    def _show_workloads(self, pods: Iterable[Pod]) -> None:
        offered = self._offered.items()
        self.workloads = {key: cluster.Workload(key, wanted) for key, wanted in offered}
        for pod in pods:
            workload = self.workloads.setdefault(pod.workload, cluster.Workload(pod.workload))
            workload.pods[pod.name] = self._shown(pod)

    def _shown(self, pod: Pod) -> cluster.Pod:
        _, held = self._held[pod.uid]
        ready_at = -math.inf if pod.ready else math.inf
        return cluster.Pod(pod.name, held, ready_at, pod.container, pod.terminating, pod.completed)
