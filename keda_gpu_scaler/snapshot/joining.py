"""Reported pods + pod statuses + observation → snapshot: the pods of each namespace, by name.

Pure. It joins what exporters show of a pod with what the cluster says of it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace

from keda_gpu_scaler.snapshot.evidence import PodKey, PodStatus
from keda_gpu_scaler.snapshot.observation import Observation
from keda_gpu_scaler.snapshot.pod_status import PodStatuses
from keda_gpu_scaler.snapshot.reported_pods import ReportedPods
from keda_gpu_scaler.snapshot.snapshot import NEVER_SEEN, NamespaceSnapshot, Pod, Snapshot


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
    pod_statuses = _with_shown_devices(pod_statuses, reported_pods)
    for (namespace, name), pod in (
        *_reported(reported_pods, pod_statuses, at),
        *_listed(reported_pods, pod_statuses, observation),
    ):
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


def _with_shown_devices(pod_statuses: PodStatuses, reported_pods: ReportedPods) -> PodStatuses:
    """Return the statuses with the devices known as GPUs of which exporters have shown a pod."""
    unknown = {key: status for key, status in pod_statuses.pods.items() if status.asks_gpu is None}
    shown = {
        device
        for key, status in unknown.items()
        if key in reported_pods.pods
        for device in status.devices
    }
    known = {
        key: replace(status, asks_gpu=True)
        for key, status in unknown.items()
        if not shown.isdisjoint(status.devices)
    }
    return replace(pod_statuses, pods={**pod_statuses.pods, **known}) if known else pod_statuses


def _reported(
    reported_pods: ReportedPods, pod_statuses: PodStatuses, at: float
) -> Iterator[tuple[PodKey, Pod]]:
    """Yield the pods that exporters have shown, with what the cluster says of each."""
    for key, pod in reported_pods.pods.items():
        status = pod_statuses.status(key, at)
        ended = _ended(key, pod, status, pod_statuses, at)
        is_new = status is not pod.status or ended != pod.ended
        yield key, replace(pod, status=status, ended=ended) if is_new else pod


def _listed(
    reported_pods: ReportedPods, pod_statuses: PodStatuses, observation: Observation
) -> Iterator[tuple[PodKey, Pod]]:
    """Yield the pods that no exporter has shown: listed ones, and those that may work unseen.

    Without current evidence, one that was listed is believed to exist only if it may.
    """
    at, nothing = observation.at, Pod("", (), None, NEVER_SEEN, NEVER_SEEN)
    nothing = replace(nothing, collection_seconds=observation.collection_seconds)
    for key, known in pod_statuses.pods.items():
        is_gone = known.ended or pod_statuses.proves_gone(key, NEVER_SEEN)
        is_believed = pod_statuses.lists_end(key, known) if is_gone else pod_statuses.is_current(at)
        if key not in reported_pods.pods and (is_believed or known.may_work_unseen):
            status = pod_statuses.status(key, at)
            yield key, replace(nothing, name=key[1], status=status, ended=is_gone)


def _ended(
    key: PodKey, pod: Pod, status: PodStatus | None, pod_statuses: PodStatuses, at: float
) -> bool:
    """Tell whether a pod is gone; exporters do not end one that the cluster's newest list shows.

    That list may be a little older than the end. It may also be the exporter that has lost its map
    of pods, so the next list is waited for. An end is that of the pod that was listed: another one
    may have its name, if exporters show it long after that.
    """
    if status is not None and status.ended:
        shown_seconds = pod.last_seen - status.listed_at
        if shown_seconds <= pod_statuses.watch.grace_seconds:
            return True
        return pod.ended or pod_statuses.proves_gone(key, pod.last_seen)
    if pod_statuses.proves_gone(key, pod.last_seen):
        return True
    if status is None or not pod_statuses.is_listed(status):
        return pod.ended
    is_current = pod_statuses.is_current(at) or status.listed_at > pod.last_seen
    return pod.ended and not is_current
