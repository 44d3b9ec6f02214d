"""What the cluster says of pods: one status per pod, carried from fetch to fetch.

Pure. What cannot be undone is kept while the cluster is silent: a pod's owners, that it was Ready
once, that it is being deleted. That a pod is *not listed* proves something only if every target
that lists pods was scraped well for a while, and later than the pod was last listed or seen: after
a restart a list is short, and so is the list of one of several targets that share the pods. The
Kubernetes API lists all pods at once: a pod that was seen earlier and is not listed is gone.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from keda_gpu_scaler.snapshot.evidence import (
    Evidence,
    EvidenceSource,
    NamespaceEvidence,
    PodKey,
    PodStatement,
    PodStatus,
    Readiness,
)
from keda_gpu_scaler.snapshot.targets import grace_seconds
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.times import LEAST_GRACE_SECONDS, REMEMBERED_SECONDS, YOUNG_SECONDS

REMEMBERED = 50_000
"""How many pods are remembered, beyond which those that are not listed any more are forgotten."""
NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class Watch:
    """The targets that list the pods, and whether any of them can be missing."""

    is_whole: bool = False
    steady: int = 0
    """How many targets there recently were when none was missing."""
    steady_at: float = float("-inf")
    interval_seconds: float = 0.0
    evidence_source: EvidenceSource = EvidenceSource.KUBE_STATE_METRICS

    @property
    def grace_seconds(self) -> float:
        """How long to wait before acting on what the next scrape may change."""
        return grace_seconds(self.interval_seconds)

    def proves_gone(self, silence_seconds: float) -> bool:
        """Tell whether a pod that is not listed, and was last seen so long ago, is gone."""
        if self.evidence_source is EvidenceSource.KUBERNETES:
            return self.is_whole and silence_seconds > 0
        return self.is_whole and silence_seconds >= self.grace_seconds


@dataclass(frozen=True, slots=True)
class PodStatuses:
    """All that is remembered of pods between two fetches."""

    scraped_at: float = float("-inf")
    """The time of the newest list."""
    pods: Mapping[PodKey, PodStatus] = field(default_factory=dict)
    watch: Watch = field(default_factory=Watch)
    evidence: Mapping[str, NamespaceEvidence] = field(default_factory=dict)
    """What holds for each namespace that the newest list is about."""
    owners: Mapping[tuple[str, str], Mapping[str, float]] = field(default_factory=dict)
    """By namespace and kind, when each owner was listed for the last time."""

    def is_current(self, at: float) -> bool:
        """Tell whether there is recent evidence from the cluster."""
        return self._is_fresh(self.scraped_at, at)

    def evidence_source(self, at: float) -> EvidenceSource:
        """Return the evidence source that says which pods there are."""
        is_silenced = self.watch.evidence_source is EvidenceSource.KUBERNETES and not self.evidence
        return (
            self.watch.evidence_source
            if self.is_current(at) and not is_silenced
            else EvidenceSource.EXPORTERS
        )

    def is_listed(self, status: PodStatus) -> bool:
        """Tell whether the newest scrape showed this pod."""
        return status.listed_at >= self.scraped_at

    def lists_end(self, key: PodKey, status: PodStatus) -> bool:
        """Tell whether the Kubernetes API shows now that this pod is ending, or has just ended.

        In other evidence, a pod that is ending is treated like one that is not listed.
        """
        is_available = (
            self.watch.evidence_source is EvidenceSource.KUBERNETES and key[0] in self.evidence
        )
        return is_available and status.ended and self.is_listed(status)

    def status(self, key: PodKey, at: float) -> PodStatus | None:
        """Return what is known of a pod; how it is now, and was never, holds only for a while."""
        known = self.pods.get(key)
        if known is None or self._is_fresh(known.listed_at, at):
            return known
        was_ready = known.readiness is Readiness.EVER
        readiness = Readiness.EVER if was_ready else Readiness.UNKNOWN
        return replace(known, readiness=readiness, is_ready=False, unschedulable=None)

    def proves_gone(self, key: PodKey, last_seen: float) -> bool:
        """Tell whether a pod that was last seen at `last_seen` does not exist any more."""
        known = self.pods.get(key)
        last = last_seen if known is None else max(last_seen, known.listed_at)
        return key[0] in self.evidence and self.watch.proves_gone(self.scraped_at - last)

    def _is_fresh(self, time: float, at: float) -> bool:
        return at - time <= 2 * self.watch.grace_seconds


def advance_pod_statuses(
    pod_statuses: PodStatuses, evidence: Evidence, namespaces: Collection[str], at: float
) -> PodStatuses:
    """Return the statuses after a fetch at the instant `at`, which was about `namespaces`."""
    watch = _watched(pod_statuses.watch, evidence, at)
    # Without `up` the scrape time is unknown: at most one scrape ago.
    listed_at = min(evidence.scrapes.values(), default=at - LEAST_GRACE_SECONDS)
    pods = {
        key: status
        for key, status in pod_statuses.pods.items()
        if key[0] in namespaces and at - status.listed_at <= REMEMBERED_SECONDS
    }
    for key, statement in evidence.pods.items():
        # The newest last: the one that was not listed for longest is forgotten first.
        pods[key] = _status(pods.pop(key, None), statement, at, listed_at)
    for key in list(pods)[: max(0, len(pods) - REMEMBERED)]:
        if key not in evidence.pods:
            del pods[key]
    scraped_at = listed_at if evidence.is_available else pod_statuses.scraped_at
    owners = _listed_owners(pod_statuses.owners, evidence.owners, namespaces, at)
    by_namespace = _by_namespace(evidence, watch, scraped_at, owners)
    return PodStatuses(scraped_at, pods, watch, by_namespace, owners)


def silenced(pod_statuses: PodStatuses) -> PodStatuses:
    """Return the statuses while the cluster is silent: absence proves nothing then."""
    watch = replace(pod_statuses.watch, is_whole=False)
    return replace(pod_statuses, watch=watch, evidence={})


def _watched(watch: Watch, evidence: Evidence, at: float) -> Watch:
    """Wait an hour for a lost target: of several that share the pods, its part is missing."""
    if evidence.evidence_source is not watch.evidence_source:
        # The other evidence source has other targets.
        watch = Watch(evidence_source=evidence.evidence_source)
    interval = max(evidence.stable_since.values(), default=watch.interval_seconds)
    expected = watch.steady if at - watch.steady_at <= REMEMBERED_SECONDS else 0
    if evidence.is_whole and len(evidence.scrapes) >= expected:
        return Watch(
            is_whole=True,
            steady=len(evidence.scrapes),
            steady_at=at,
            interval_seconds=interval,
            evidence_source=evidence.evidence_source,
        )
    return replace(watch, is_whole=False, interval_seconds=interval)


def _status(
    known: PodStatus | None, statement: PodStatement, at: float, listed_at: float
) -> PodStatus:
    if known is not None and _is_another(known, statement):
        known = None
    readiness, ready_since = _readiness(known, statement, at)
    ended_at = None
    if statement.ended:
        ended_at = listed_at if known is None or known.ended_at is None else known.ended_at
    return PodStatus(
        owners=statement.owners,
        created_at=statement.created_at,
        readiness=readiness,
        ready_since=ready_since,
        ended=statement.ended or (known is not None and known.ended),
        asks_gpu=statement.asks_gpu,
        devices=statement.devices,
        unschedulable=statement.unschedulable,
        is_ready=statement.ready is True,
        alive_at=listed_at if not statement.ended else NEVER if known is None else known.alive_at,
        ended_at=ended_at,
        listed_at=listed_at,
    )


def _is_another(known: PodStatus, statement: PodStatement) -> bool:
    """Tell whether it is about another pod of the same name: an ended pod does not come back."""
    if statement.created_at is None:  # of one that left, too
        return known.ended and not statement.ended
    return known.created_at != statement.created_at


def _readiness(
    known: PodStatus | None, statement: PodStatement, at: float
) -> tuple[Readiness, float | None]:
    """Return the readiness of a pod, and since when it is Ready."""
    if known is not None and known.readiness is Readiness.EVER:
        return Readiness.EVER, known.ready_since
    if statement.ready:
        if statement.ready_at is not None:
            return Readiness.EVER, statement.ready_at
        was_watched = known is not None and known.readiness is Readiness.NEVER
        is_young = statement.created_at is not None and at - statement.created_at < YOUNG_SECONDS
        is_recent = was_watched or statement.ready_recently or is_young
        return Readiness.EVER, at if is_recent else None
    if statement.was_ready:
        return Readiness.EVER, None
    return (Readiness.UNKNOWN if statement.ready is None else Readiness.NEVER), None


def _listed_owners(
    before: Mapping[tuple[str, str], Mapping[str, float]],
    listed: Mapping[tuple[str, str], Collection[str]],
    namespaces: Collection[str],
    at: float,
) -> dict[tuple[str, str], dict[str, float]]:
    """Return when each owner was listed for the last time, for an hour: one may be replaced."""
    recent = {
        kind: {name: when for name, when in names.items() if at - when <= REMEMBERED_SECONDS}
        for kind, names in before.items()
        if kind[0] in namespaces
    }
    return recent | {
        kind: recent.get(kind, {}) | dict.fromkeys(names, at) for kind, names in listed.items()
    }


def _by_namespace(
    evidence: Evidence,
    watch: Watch,
    scraped_at: float,
    owners: Mapping[tuple[str, str], Collection[str]],
) -> dict[str, NamespaceEvidence]:
    without_pods, selected = _owners(evidence.without_pods), _owners(evidence.selected)
    wanted: dict[str, dict[Owner, int]] = defaultdict(dict)
    for (namespace, owner), replicas in evidence.wanted.items():
        wanted[namespace][owner] = replicas
    names: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for namespace, kind in evidence.owners:
        names[namespace][kind] = frozenset(owners[namespace, kind])
    return {
        namespace: NamespaceEvidence(
            scraped_at,
            watch.is_whole,
            frozenset(without_pods[namespace]),
            watch.evidence_source,
            frozenset(selected[namespace]),
            wanted[namespace],
            names[namespace],
        )
        for namespace in evidence.covered
    }


def _owners(pairs: Iterable[tuple[str, Owner]]) -> dict[str, set[Owner]]:
    owners: dict[str, set[Owner]] = defaultdict(set)
    for namespace, owner in pairs:
        owners[namespace].add(owner)
    return owners
