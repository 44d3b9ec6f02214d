"""The cluster's status of each pod, and the snapshot that joins it with what exporters show.

Pure. Of each pod one status is carried from fetch to fetch. What cannot be undone is kept while the
cluster is silent: a pod's owners, that it was Ready once, that it is being deleted. That a pod is
*not listed* proves something only if every target that lists pods was scraped well for a while, and
later than the pod was last listed or seen: after a restart a list is short, and so is the list of
one of several targets that share the pods. The Kubernetes API lists all pods at once: a pod that
was seen earlier and is not listed is gone.

`build_snapshot` joins the statuses with what exporters have shown, pod by pod.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from keda_gpu_scaler.snapshot.evidence import (
    Evidence,
    EvidenceSource,
    NamespaceEvidence,
    PodKey,
    PodStatement,
    PodStatus,
    Readiness,
)
from keda_gpu_scaler.snapshot.observation import Observation, grace_seconds
from keda_gpu_scaler.snapshot.reported_pods import ReportedPods
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot, Pod, Snapshot
from keda_gpu_scaler.times import LEAST_GRACE_SECONDS, REMEMBERED_SECONDS, YOUNG_SECONDS

REMEMBERED = 50_000
"""How many pods are remembered, beyond which those that are not listed any more are forgotten."""
NEVER = float("-inf")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Watch:
    """The targets that list the pods, and whether any of them can be missing."""

    is_whole: bool = False
    steady: int = 0
    """How many targets there recently were when none was missing."""
    steady_at: float = float("-inf")
    grace_seconds: float = LEAST_GRACE_SECONDS
    """How long to wait before acting on what the next scrape may change."""
    evidence_source: EvidenceSource = EvidenceSource.KUBE_STATE_METRICS


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
        source = self.watch.evidence_source
        is_silenced = source is EvidenceSource.KUBERNETES and not self.evidence
        return EvidenceSource.EXPORTERS if is_silenced or not self.is_current(at) else source

    def is_listed(self, status: PodStatus) -> bool:
        """Tell whether the newest scrape showed this pod."""
        return status.listed_at >= self.scraped_at

    def lists_end(self, key: PodKey, status: PodStatus) -> bool:
        """Tell whether the Kubernetes API shows now that this pod is ending, or has just ended.

        In other evidence, a pod that is ending is treated like one that is not listed.
        """
        is_kubernetes = self.watch.evidence_source is EvidenceSource.KUBERNETES
        return is_kubernetes and key[0] in self.evidence and status.ended and self.is_listed(status)

    def status(self, key: PodKey, at: float) -> PodStatus | None:
        """Return what is known of a pod; how it is now, and was never, holds only for a while."""
        known = self.pods.get(key)
        if known is None or self._is_fresh(known.listed_at, at):
            return known
        is_never = known.readiness is Readiness.NEVER
        readiness = Readiness.UNKNOWN if is_never else known.readiness
        return replace(known, readiness=readiness, ready=None, unschedulable=None)

    def proves_gone(self, key: PodKey, last_seen: float) -> bool:
        """Tell whether a pod that was last seen at `last_seen` does not exist any more."""
        known = self.pods.get(key)
        silence = self.scraped_at - max(last_seen, known.listed_at if known else NEVER)
        lists_all = self.watch.evidence_source is EvidenceSource.KUBERNETES
        is_silent = silence > 0 if lists_all else silence >= self.watch.grace_seconds
        return key[0] in self.evidence and self.watch.is_whole and is_silent

    def _is_fresh(self, time: float, at: float) -> bool:
        return at - time <= 2 * self.watch.grace_seconds


def advance_pod_statuses(
    pod_statuses: PodStatuses, evidence: Evidence, namespaces: Collection[str], at: float
) -> PodStatuses:
    """Return the statuses after a fetch at the instant `at`, which was about `namespaces`."""
    watch = _watched(pod_statuses.watch, evidence, at)
    # Without `up` the scrape time is unknown. The least grace covers one scrape at Prometheus' own
    # default, a minute: so the list is not taken for newer than it is.
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
    return replace(pod_statuses, evidence={})


def _watched(watch: Watch, evidence: Evidence, at: float) -> Watch:
    """Wait an hour for a lost target: of several that share the pods, its part is missing."""
    if evidence.evidence_source is not watch.evidence_source:
        # The other evidence source has other targets.
        watch = Watch(evidence_source=evidence.evidence_source)
    intervals = evidence.stable_since.values()
    grace = grace_seconds(max(intervals)) if intervals else watch.grace_seconds
    expected = watch.steady if at - watch.steady_at <= REMEMBERED_SECONDS else 0
    is_whole = evidence.is_whole and len(evidence.scrapes) >= expected
    watch = replace(watch, is_whole=is_whole, grace_seconds=grace)
    return replace(watch, steady=len(evidence.scrapes), steady_at=at) if is_whole else watch


def _status(
    known: PodStatus | None, statement: PodStatement, at: float, listed_at: float
) -> PodStatus:
    if known is not None and _is_another(known, statement):
        known = None
    readiness, ready_since = _readiness(known, statement, at)
    alive_at, ended_at = listed_at, math.inf
    if statement.ended:
        alive_at = known.alive_at if known else NEVER
        ended_at = min(known.ended_at, listed_at) if known else listed_at
    newest: dict[str, Any] = {name: getattr(statement, name) for name in PodStatement.__slots__}
    newest["ended"] = statement.ended or (known is not None and known.ended)
    return PodStatus(
        **newest,
        readiness=readiness,
        ready_since=ready_since,
        alive_at=alive_at,
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
) -> tuple[Readiness, float]:
    """Return the readiness of a pod, and since when it is Ready."""
    if known is not None and known.readiness is Readiness.EVER:
        return Readiness.EVER, known.ready_since
    if statement.ready:
        was_watched = known is not None and known.readiness is Readiness.NEVER
        is_young = statement.created_at is not None and at - statement.created_at < YOUNG_SECONDS
        is_recent = was_watched or statement.ready_recently or is_young
        since = at if is_recent else NEVER
        return Readiness.EVER, since if statement.ready_at is None else statement.ready_at
    if statement.was_ready:
        return Readiness.EVER, NEVER
    return (Readiness.UNKNOWN if statement.ready is None else Readiness.NEVER), NEVER


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
    without_pods = _grouped(dict.fromkeys(evidence.without_pods))
    selected, wanted = _grouped(dict.fromkeys(evidence.selected)), _grouped(evidence.wanted)
    names = _grouped({kind: frozenset(owners[kind]) for kind in evidence.owners})
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


def _grouped(values: Mapping[tuple[str, _Key], _Value]) -> dict[str, dict[_Key, _Value]]:
    """Group by namespace."""
    groups: dict[str, dict[_Key, _Value]] = defaultdict(dict)
    for (namespace, key), value in values.items():
        groups[namespace][key] = value
    return groups


def build_snapshot(
    reported_pods: ReportedPods,
    pod_statuses: PodStatuses,
    observation: Observation,
    namespaces: Collection[str],
    recorded: Collection[str],
) -> Snapshot:
    """Return the snapshot that answers for all of `namespaces`.

    `reported_pods` include `observation`. Of the namespaces in `recorded` the last hour is known.
    """
    at, pods = observation.at, defaultdict[str, dict[str, Pod]](dict)
    for (namespace, name), pod in _joined(reported_pods, pod_statuses, observation):
        pods[namespace][name] = pod
    evidence = pod_statuses.evidence if pod_statuses.is_current(at) else {}
    return Snapshot(
        at,
        {
            namespace: NamespaceSnapshot(
                at,
                tuple(sorted(pods[namespace])),
                pods[namespace],
                absence_known=observation.absence_known and namespace in recorded,
                shows_every_pod=not observation.misses_targets and namespace in recorded,
                evidence=evidence.get(namespace),
                unmatched_elements=observation.unmatched_elements,
                unmatched_labels=observation.unmatched_labels,
            )
            for namespace in namespaces
        },
        observation.refused_samples,
        sum(bool(series.stuck) for series in observation.series),
    )


def _joined(
    reported_pods: ReportedPods, pod_statuses: PodStatuses, observation: Observation
) -> Iterator[tuple[PodKey, Pod]]:
    """Yield each pod of the snapshot with its status.

    All pods that exporters have shown are in it. A pod that only the cluster knows is in it while
    lists are recent, or if it may work unseen. If an exporter has shown a pod, devices of its
    unknown kind are GPUs.
    """
    at, reported, statuses = observation.at, reported_pods.pods, pod_statuses.pods
    shown = [statuses[key] for key in reported if key in statuses]
    gpus = {device for status in shown if status.asks_gpu is None for device in status.devices}
    for key in {**reported, **statuses}:
        known, status = reported.get(key), pod_statuses.status(key, at)
        if status and status.asks_gpu is None and not gpus.isdisjoint(status.devices):
            status = replace(status, asks_gpu=True)
        pod = known or Pod(key[1], collection_seconds=observation.collection_seconds)
        ended = _ended(key, pod, status, pod_statuses, at)
        if known is None and status is not None and not status.may_work_unseen:
            is_current = pod_statuses.is_current(at)
            if not (pod_statuses.lists_end(key, status) if ended else is_current):
                continue
        yield key, replace(pod, status=status, ended=ended) if status or ended else pod


def _ended(
    key: PodKey, pod: Pod, status: PodStatus | None, pod_statuses: PodStatuses, at: float
) -> bool:
    """Tell whether a pod is gone, by the strongest of these.

    1. The cluster's list shows its end, and exporters do not show it long after that list. If they
       do, another pod has its name.
    2. A whole list lacks it, later than it was shown.
    3. Not gone if the newest list shows it alive, even if exporters show its end: they may have
       lost their map of pods. The next list decides.
    4. Exporters show that it is gone.
    """
    if status is None:
        return pod.ended or pod_statuses.proves_gone(key, pod.last_seen)
    shown_seconds = pod.last_seen - status.listed_at
    if status.ended and shown_seconds <= pod_statuses.watch.grace_seconds:
        return True
    if pod_statuses.proves_gone(key, pod.last_seen):
        return True
    is_alive = not status.ended and pod_statuses.is_listed(status)
    return pod.ended and not (is_alive and (pod_statuses.is_current(at) or shown_seconds < 0))
