"""What the ScaledObjects of a namespace may use: sources, other pods, PromQL.

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
