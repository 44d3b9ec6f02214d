"""What the cluster says of its pods and their owners, beside what exporters show of the GPUs.

Values only. A *statement* is about one pod at one fetch. A *status* is what all statements about
one pod come to: a pod that was Ready once stays one that was Ready once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto

from keda_gpu_scaler.snapshot.observation import Target
from keda_gpu_scaler.spec.workload import Owner

PodKey = tuple[str, str]
"""Namespace and name."""


class EvidenceSource(StrEnum):
    """By whom it is known which pods there are, and how they are; the strongest first."""

    KUBERNETES = "kubernetes"
    KUBE_STATE_METRICS = "kube-state-metrics"
    EXPORTERS = "exporters"


TIME_STEP_SECONDS = 1.0
"""Kubernetes cuts fractions off its times (metav1.Time): it was within the next second."""
"""How the names of extended resources begin that are GPUs, or parts of them."""


class Readiness(Enum):
    """Whether a pod has ever been Ready."""

    UNKNOWN = auto()
    NEVER = auto()
    EVER = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStatement:
    """What one fetch says of one pod."""

    owners: frozenset[Owner] = frozenset()
    """Its controlling owner, and that one's own: `owners.NOBODY`, if it is known to have none."""
    created_at: float | None = None
    ready: bool | None = None
    """Ready now; None: nobody says."""
    ready_at: float | None = None
    """Since when it is Ready; None: nobody says."""
    ready_recently: bool = False
    """Ready for minutes at most."""
    was_ready: bool = False
    """Not Ready now, and within the last hour it was."""
    ended: bool = False
    """It succeeded, failed or is being deleted: none of these can be undone."""
    asks_gpu: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one fetch brought."""

    pods: Mapping[PodKey, PodStatement]
    without_pods: frozenset[tuple[str, Owner]] = frozenset()
    """The owners, by namespace, that say themselves that they have no replicas."""
    covered: frozenset[str] = frozenset()
    """The namespaces it speaks of at all."""
    scrapes: Mapping[Target, float] = field(default_factory=dict)
    """The targets that speak, and when each of them was last scraped well."""
    stable_since: Mapping[Target, float] = field(default_factory=dict)
    """Those of them that have done so for two minutes, and the seconds between two scrapes."""
    down: frozenset[Target] = frozenset()
    """The targets that should speak and do not."""
    evidence_source: EvidenceSource = EvidenceSource.KUBE_STATE_METRICS
    """Who says it."""
    selected: frozenset[tuple[str, Owner]] = frozenset()
    """The scale targets, by namespace, whose label selectors are known: every pod that one of them
    selects has it among its owners."""

    @property
    def is_available(self) -> bool:
        """Whether anybody said anything."""
        return bool(self.scrapes or self.pods or self.covered)

    @property
    def is_whole(self) -> bool:
        """Whether everybody speaks who does now or should, and has for a while."""
        return (
            bool(self.scrapes) and self.stable_since.keys() >= self.scrapes.keys() and not self.down
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStatus:
    """What is known of one pod from all statements about it."""

    owners: frozenset[Owner] = frozenset()
    created_at: float | None = None
    readiness: Readiness = Readiness.UNKNOWN
    ready_since: float | None = None
    """When it became Ready for the first time; None: not yet, or before anything that is known."""
    ended: bool = False
    asks_gpu: bool = False
    listed_at: float
    """The time of the newest scrape that showed it."""


@dataclass(frozen=True, slots=True)
class NamespaceEvidence:
    """What holds for a whole namespace."""

    scraped_at: float
    """The time it speaks of."""
    absence_known: bool
    """A pod that is not listed does not exist."""
    without_pods: frozenset[Owner] = frozenset()
    evidence_source: EvidenceSource = EvidenceSource.KUBE_STATE_METRICS
    selected: frozenset[Owner] = frozenset()
    """The scale targets of which it is known whom they select."""

    def denies(self, owner: Owner | None, last_listed: float) -> bool:
        """Tell whether a workload of which no pod is there is said to have none.

        Its own count can say so. So can the Kubernetes API's list of pods, for every kind of owner,
        if none of it is listed: a pod that is ending, or went just now, is about to be replaced as
        often as not. A list in kube-state-metrics may lack what was not scraped yet.

        Args:
            owner: whose count is the workload's.
            last_listed: when one of its pods was listed for the last time.
        """
        lists_all = self.evidence_source is EvidenceSource.KUBERNETES and self.absence_known
        return owner in self.without_pods or (lists_all and last_listed < self.scraped_at)
