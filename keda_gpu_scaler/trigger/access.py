"""What the ScaledObjects of a namespace may use: sources, other pods, PromQL, and shared places.

Pure values, filled from the process settings. What the operator has not allowed is forbidden: a
trigger measures the pods of its own namespace.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from keda_gpu_scaler.promql import Policy


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Some namespaces, or all of them, future ones included."""

    names: frozenset[str] = frozenset()
    every: bool = False

    def __contains__(self, namespace: object) -> bool:
        return self.every or namespace in self.names

    def __str__(self) -> str:
        """Return the form of the settings: `a,b`, or `*` for all namespaces."""
        return "*" if self.every else ",".join(sorted(self.names))


NO_NAMESPACE = Namespaces()
EVERY_NAMESPACE = Namespaces(every=True)


@dataclass(frozen=True, slots=True)
class Access:
    """What ScaledObjects are allowed, by their namespace."""

    sources: Mapping[str, Namespaces] = field(default_factory=dict)
    """The namespaces that may use a source, by its name."""
    others: Namespaces = NO_NAMESPACE
    """The namespaces with pods that ScaledObjects of any other namespace may measure."""
    own_promql: Policy = Policy.NAMESPACED
    """What custom PromQL may read."""
    direct_sources: frozenset[str] = frozenset()
    """The sources that read exporters directly; they understand no PromQL."""
    knows_targets: bool = False
    """The Kubernetes API says what a ScaledObject scales, so `workload` may be left out."""
    influxql_sources: frozenset[str] = frozenset()
    """The sources that are queried in InfluxQL; they understand no PromQL."""

    def source_names(self, namespace: str) -> frozenset[str]:
        return frozenset(name for name, users in self.sources.items() if namespace in users)


class Places:
    """Places for calls or for alerts, and which share of them a namespace may take.

    A namespace may take three times as many as there are free places. Alone it takes three quarters
    of all; each of two that flood takes three sevenths, and so on: there is always room for one
    that asks little. (Dynamic thresholds, as switches share their buffers: Choudhury and Hahne,
    IEEE/ACM Transactions on Networking 6, 1998.)
    """

    _FREE_TIMES = 3

    def __init__(self, most: int) -> None:
        self.free = most
        self._taken: dict[str, int] = {}

    def has_room(self, namespace: str) -> bool:
        """Return whether a namespace may take one more place."""
        return self._taken.get(namespace, 0) < self._FREE_TIMES * self.free

    def take(self, namespace: str) -> bool:
        """Take a place for a namespace, if it may have one more, and say so."""
        has_room = self.has_room(namespace)
        if has_room:
            self._taken[namespace] = self._taken.get(namespace, 0) + 1
            self.free -= 1
        return has_room

    def give_back(self, namespace: str) -> None:
        self.free += 1
        still_taken = self._taken[namespace] - 1
        if still_taken:
            self._taken[namespace] = still_taken
        else:
            del self._taken[namespace]
