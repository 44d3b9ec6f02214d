"""The result of one shared query: every pod's GPU samples, and when each pod was last seen.

Values only. A snapshot is complete for its namespaces: the decision for any workload in them needs
nothing else. All times are seconds on the source's own clock (Unix time).
"""

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from keda_gpu_scaler.snapshot.evidence import (
    EvidenceSource,
    NamespaceEvidence,
    PodStatus,
    Readiness,
)
from keda_gpu_scaler.snapshot.observation import Target
from keda_gpu_scaler.spec.spec import OwnQuery, Signal
from keda_gpu_scaler.spec.workload import Owner

NEVER_SEEN = -math.inf
"""Of a time: nothing has shown it, so that it is not known, or before all that is watched. Of what
has not come yet, the time is infinite."""


@dataclass(frozen=True, slots=True)
class GpuSamples:
    """The samples of one GPU, or of one MIG instance, while one pod held it."""

    gpu: str
    times: tuple[float, ...]
    """Ascending."""
    values: tuple[float, ...]
    """One for each time, in the signal's unit; finite and believable."""
    refused: tuple[float, ...] = ()
    """The instants at which it showed an unbelievable number."""

    @property
    def last(self) -> float:
        """The newest instant at which it was there."""
        return max((*self.times[-1:], *self.refused[-1:])) if self.refused else self.times[-1]


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod as the exporters saw it, if they did."""

    name: str
    gpus: tuple[GpuSamples, ...] = ()
    """Its GPUs, former ones included."""
    first_seen: float = NEVER_SEEN
    """When its series began, if it was not there before it was watched."""
    last_seen: float = NEVER_SEEN
    """The newest instant at which a healthy target reported it."""
    sampled_at: float = NEVER_SEEN
    """When its newest sample was taken; not after `last_seen`."""
    scrape_interval_seconds: float = 0.0
    """How often its target is scraped, as observed; 0 when that is not known yet."""
    collection_seconds: float = 0.0
    """How old its numbers can be when they are scraped."""
    sampled_since: float = NEVER_SEEN
    """The source has no samples from before, whether it was there or not."""
    averaged: bool = False
    """The exporter's number is itself an average over its interval."""
    targets: frozenset[Target] = frozenset()
    """The targets that reported it at `last_seen`."""
    ended: bool = False
    """It is known to be gone."""
    ended_at: float = math.inf
    """The instant at which exporters showed that it is gone."""
    released_since: float = math.inf
    """Since when its GPUs are always reported without it."""
    is_unnamed: bool = False
    """Its GPUs are reported without it, by an exporter that names no pod: it may have lost its map
    of pods."""
    busy_unnamed_at: float = NEVER_SEEN
    """When one of its GPUs was last busy without a pod, since the exporter named it."""
    shows_free_gpus: bool = False
    """Its exporter shows GPUs without a pod as well."""
    shown_by: tuple[str, ...] = ()
    """The metrics that its samples come from, with the labels that name it: for people."""
    stuck: frozenset[str] = frozenset()
    """Which metrics of its GPUs are stuck at 0, and which are read instead, as clauses."""
    contradicted_at: float = NEVER_SEEN
    """When one metric of a GPU was last 0 beside work of another, and neither was read."""
    unsure_seconds: float = 0.0
    """It may have been seen so much later than `last_seen`: that comes from a coarse history."""
    status: PodStatus | None = None
    """What the cluster says of it; None: nothing, or the cluster was not asked."""

    @property
    def was_seen(self) -> bool:
        return self.last_seen > NEVER_SEEN

    @property
    def shown_at(self) -> float:
        """When an exporter or the cluster last showed it."""
        return self.last_seen if self.status is None else max(self.last_seen, self.status.listed_at)

    @property
    def owners(self) -> frozenset[Owner]:
        """Its owners, as far as the cluster has said which these are."""
        return frozenset() if self.status is None else self.status.owners

    @property
    def asks_gpu(self) -> bool | None:
        """Whether it asks for a GPU; None: that is not known."""
        return None if self.status is None else self.status.asks_gpu

    @property
    def readiness(self) -> Readiness:
        return Readiness.UNKNOWN if self.status is None else self.status.readiness


@dataclass(frozen=True, slots=True)
class NamespaceSnapshot:
    """One namespace at one instant: its pods, and what is known of pods that are not shown."""

    at: float
    """The evaluation time."""
    names: tuple[str, ...] = ()
    """The sorted names of `pods`, to find those of a workload by bisection."""
    pods: Mapping[str, Pod] = field(default_factory=dict)
    absence_known: bool = False
    """It was watched long enough that a pod that was never shown is believed absent."""
    shows_every_pod: bool = False
    """By exporters alone, no pod can be missed: each reports, or is known to have reported."""
    evidence: NamespaceEvidence | None = None
    """What the cluster said recently of its pods; None: nothing."""
    unmatched_elements: int = 0
    """Elements of a user's own query that name no pod of the queried namespaces."""
    unmatched_labels: frozenset[str] = frozenset()
    """The labels of one of them."""

    def starting_with(self, prefix: str) -> list[Pod]:
        """Return the pods with names that start with `prefix`, in the order of their names."""
        names = self.names[bisect_left(self.names, prefix) :]
        return [self.pods[name] for name in takewhile(lambda name: name.startswith(prefix), names)]

    @property
    def evidence_source(self) -> EvidenceSource:
        """The evidence source that says which pods there are."""
        if self.evidence is None:
            return EvidenceSource.EXPORTERS
        return self.evidence.evidence_source

    @property
    def is_complete(self) -> bool:
        """Whether no pod can be missed."""
        return self.shows_every_pod or (self.evidence is not None and self.evidence.absence_known)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Snapshot:
    """Every pod's load for one (source, signal, profile) at one instant."""

    at: float
    """The evaluation time."""
    namespaces: Mapping[str, NamespaceSnapshot]
    """The queried namespaces; one without pods is present and empty."""
    refused_samples: int = 0
    """Samples left out because no such GPU can exist: NaN, infinite, negative, beyond the limit."""
    stuck_gpus: int = 0
    """GPUs of pods with a metric that is stuck at 0 while another one shows work."""

    def of(self, namespace: str) -> NamespaceSnapshot:
        """Return the snapshot of one namespace; empty for one that was not queried."""
        return self.namespaces.get(namespace) or NamespaceSnapshot(self.at)

    @property
    def pod_count(self) -> int:
        return sum(
            pod.was_seen
            for namespace in self.namespaces.values()
            for pod in namespace.pods.values()
        )


class SnapshotKey(NamedTuple):
    """What identifies a shared snapshot."""

    source: str
    """As facts name it: with the namespace appended, if each has a snapshot of its own."""
    signal: Signal
    profile: str
    is_long_range: bool = False
    """It reaches back so far that triggers with shorter spans do not share it."""
    query: OwnQuery | None = None
    """The custom PromQL whose samples it holds."""
