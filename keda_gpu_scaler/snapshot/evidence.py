"""What the cluster says of its pods and their owners, beside what exporters show of the GPUs.

Values only. A *statement* is about one pod at one fetch. A *status* combines all statements about
one pod: that a pod was Ready once is never forgotten.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from keda_gpu_scaler.snapshot.observation import Target
from keda_gpu_scaler.spec.workload import Owner

PodKey = tuple[str, str]
"""Namespace and name."""


class EvidenceSource(StrEnum):
    """What says which pods there are, and how they are; the strongest first."""

    KUBERNETES = "kubernetes"
    KUBE_STATE_METRICS = "kube-state-metrics"
    EXPORTERS = "exporters"


class Readiness(Enum):
    """Whether a pod has ever been Ready."""

    UNKNOWN = auto()
    NEVER = auto()
    EVER = auto()


class Unschedulable(NamedTuple):
    """The scheduler finds no node for a pod, which is also so while a node is on its way."""

    since: float
    """In kube-state-metrics the time at which the pod was created."""
    message: str = ""
    """The scheduler's words; empty: the evidence has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStatement:
    """What one fetch says of one pod."""

    owners: frozenset[Owner] = frozenset()
    """Its controlling owner, and the owner of that; `workload.NO_OWNER`: it has none."""
    created_at: float | None = None
    ready: bool | None = None
    """Ready now; None: unknown."""
    ready_at: float | None = None
    """Since when it is Ready; None: unknown."""
    ready_recently: bool = False
    """Ready for minutes at most."""
    was_ready: bool = False
    """Not Ready now, but it was within the last hour."""
    ended: bool = False
    """It succeeded, failed or is being deleted; none of these can be undone."""
    asks_gpu: bool | None = False
    """None: unknown."""
    devices: frozenset[str] = frozenset()
    """The extended resources that it asks for, of which it is not known whether they are GPUs."""
    unschedulable: Unschedulable | None = None
    """None: it has a node, or nothing shows that it has none."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one fetch returned."""

    pods: Mapping[PodKey, PodStatement]
    without_pods: frozenset[tuple[str, Owner]] = frozenset()
    """The owners, by namespace, with a replica count of 0 of their own."""
    covered: frozenset[str] = frozenset()
    """The namespaces it is about."""
    scrapes: Mapping[Target, float] = field(default_factory=dict)
    """The targets that answer, and the time of each one's last good scrape."""
    stable_since: Mapping[Target, float] = field(default_factory=dict)
    """Those of them that have answered for two minutes, and the seconds between two scrapes."""
    down: frozenset[Target] = frozenset()
    """The targets that should answer and do not."""
    evidence_source: EvidenceSource = EvidenceSource.KUBE_STATE_METRICS
    """Where it comes from."""
    selected: frozenset[tuple[str, Owner]] = frozenset()
    """The scale targets, by namespace, with a known label selector; every pod that one selects has
    it among its owners."""
    wanted: Mapping[tuple[str, Owner], int] = field(default_factory=dict)
    """How many replicas owners, by namespace, ask for (`spec.replicas`), where that is known."""
    owners: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    """The names of all owners of a kind in a namespace, for each such pair that it lists."""

    @property
    def is_available(self) -> bool:
        return bool(self.scrapes or self.pods or self.covered)

    @property
    def is_whole(self) -> bool:
        """Whether all targets answer and have for a while, so that no part is missing."""
        return (
            bool(self.scrapes) and self.stable_since.keys() >= self.scrapes.keys() and not self.down
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStatus(PodStatement):
    """The newest statement about a pod, and what all of them say together.

    How it is now is unknown once that is too old. An end is for good.
    """

    readiness: Readiness = Readiness.UNKNOWN
    ready_since: float = -math.inf
    """When it became Ready for the first time, if that is known."""
    alive_at: float = -math.inf
    """The time of the newest scrape that showed it, and not its end."""
    ended_at: float = math.inf
    """The time of the first scrape that showed its end."""
    listed_at: float
    """The time of the newest scrape that showed it."""

    @property
    def may_work_unseen(self) -> bool:
        """Whether it may ask for a GPU and was Ready: it may work although no exporter shows it."""
        return self.asks_gpu is not False and self.readiness is Readiness.EVER


@dataclass(frozen=True, slots=True)
class NamespaceEvidence:
    """What holds for a whole namespace."""

    scraped_at: float
    """The time it is about."""
    absence_known: bool
    """A pod that is not listed does not exist."""
    without_pods: frozenset[Owner] = frozenset()
    evidence_source: EvidenceSource = EvidenceSource.KUBE_STATE_METRICS
    selected: frozenset[Owner] = frozenset()
    """The scale targets of which the selected pods are known."""
    wanted: Mapping[Owner, int] = field(default_factory=dict)
    """How many replicas owners ask for, where that is known."""
    owners: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The names of the owners that were listed within the last hour, for each kind that is."""

    def omits(self, owner: Owner | None) -> bool:
        """Tell whether a list of owners of this kind, perhaps not a whole one, has not this one."""
        return owner is not None and owner.name not in self.owners.get(owner.kind, {owner.name})

    def lacks(self, owner: Owner | None) -> bool:
        """Tell whether a list of all owners of this kind does not have this one."""
        return self.absence_known and self.omits(owner)

    def denies(self, owner: Owner | None, last_listed: float) -> bool:
        """Tell whether a workload without known pods is said to have none.

        Its own replica count can say so. So can the Kubernetes API's list of pods, for every kind
        of owner, if it lists none of them: a pod that is ending, or ended just now, is often about
        to be replaced. A list in kube-state-metrics may lack pods that were not scraped yet.
        """
        lists_all = self.evidence_source is EvidenceSource.KUBERNETES and self.absence_known
        return owner in self.without_pods or (lists_all and last_listed < self.scraped_at)
