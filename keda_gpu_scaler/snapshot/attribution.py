"""Whose GPUs a series shows, where jobs, labels or the cluster's list say different things. Pure.

Whoever is scraped can name any pod of any namespace. What cannot be invented is how many targets a
job has, and which pods the cluster lists.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from keda_gpu_scaler.snapshot.evidence import EvidenceSource, PodKey
from keda_gpu_scaler.snapshot.observation import Observation, Series
from keda_gpu_scaler.snapshot.pod_status import PodStatuses
from keda_gpu_scaler.spec.workload import Owner

FAR_WIDER = 4
"""A job of a less preferred exporter counts only if it has so many times as many targets: two
exporters of one cluster seldom differ by so much, and who only pretends to be one has few."""


class Breadth(NamedTuple):
    """How much a scrape job shows; of two the one with more targets, then namespaces, counts."""

    targets: int = 0
    namespaces: int = 0
    """Less than targets, because a single target can name any number of them."""


class Showing(NamedTuple):
    """One scrape job that shows a pod's GPUs by the series of one exporter."""

    job: str
    rank: int
    """The exporter's order of preference."""
    first: float
    last: float
    """The instants between which it shows the pod."""

    def overlaps(self, other: "Showing") -> bool:
        return self.first <= other.last and other.first <= self.last


def believed(
    showings: Collection[Showing], breadths: Mapping[str, Breadth]
) -> tuple[frozenset[tuple[str, int]], dict[str, str]]:
    """Return the jobs and ranks that count for a pod, and what each overruled job is overruled by.

    Jobs that show it one after the other all count: it moved, or the job was renamed. Of exporters
    it is the preferred one of those that showed the pod last.
    """
    overruled: dict[str, str] = {}
    kept: list[Showing] = []  # the widest first

    def width(showing: Showing) -> tuple[Breadth, float, str]:
        return breadths.get(showing.job, Breadth()), showing.last, showing.job

    for showing in sorted(showings, key=width, reverse=True):
        same = [other for other in kept if other.rank == showing.rank and other.overlaps(showing)]
        if same:
            overruled[showing.job] = same[0].job
        else:
            kept.append(showing)
    rank = max(kept, key=lambda showing: (showing.last, -showing.rank)).rank
    preferred, widest = next(showing for showing in kept if showing.rank == rank), kept[0]
    if width(widest)[0].targets >= FAR_WIDER * max(1, width(preferred)[0].targets):
        rank, overruled[preferred.job] = widest.rank, widest.job
    return frozenset((each.job, each.rank) for each in kept if each.rank == rank), overruled


def attributed(
    observation: Observation, pod_statuses: PodStatuses
) -> tuple[Observation, frozenset[PodKey]]:
    """Return the observation without series of which the pod is not known, and pods that are not.

    Of the pods that a series may be about it is the only one that the cluster lists. A pod that is
    shown now and was never listed does not exist, unless the list may be late.
    """
    at = observation.at
    series = [_named(each, pod_statuses) if each.rivals else each for each in observation.series]
    known = [each for each in series if each is not None]
    shown = {each.key for each in known if each.present[-1] >= at}
    unlisted = shown - pod_statuses.pods.keys()
    invented = frozenset(_invented(unlisted, pod_statuses, at))
    if not invented and not any(each.rivals for each in observation.series):
        return observation, invented
    kept = (each for each in known if each.key not in invented)
    return replace(observation, series=tuple(kept)), invented


def _named(series: Series, pod_statuses: PodStatuses) -> Series | None:
    """Return a series about the one pod that it can be about; None: that is not known."""
    pods = [series.key, *series.rivals]
    listed = [pod for pod in pods if pod in pod_statuses.pods]
    if len(listed) != 1 or any(namespace not in pod_statuses.evidence for namespace, _ in pods):
        return None
    (namespace, pod), *_ = listed
    return replace(series, namespace=namespace, pod=pod, rivals=())


def _invented(
    unlisted: Collection[PodKey], pod_statuses: PodStatuses, at: float
) -> Iterator[PodKey]:
    """Yield those of these pods that the cluster would list if they existed.

    A list in kube-state-metrics may be late: then it has fewer pods of an owner than that wants.
    """
    if not unlisted or not pod_statuses.is_current(at):
        return
    alive = Counter[tuple[str, Owner]](
        (namespace, owner)
        for (namespace, _), status in pod_statuses.pods.items()
        if pod_statuses.is_listed(status) and not status.ended
        for owner in status.owners
    )
    for namespace, pod in unlisted:
        evidence = pod_statuses.evidence.get(namespace)
        if evidence is None or not evidence.absence_known:
            continue
        wanted = {**dict.fromkeys(evidence.without_pods, 0), **evidence.wanted}
        owners = [owner for owner in wanted if pod.startswith(f"{owner.name}-")]
        lists_at_once = evidence.evidence_source is EvidenceSource.KUBERNETES
        if lists_at_once or (
            owners and all(alive[namespace, owner] >= wanted[owner] for owner in owners)
        ):
            yield namespace, pod
