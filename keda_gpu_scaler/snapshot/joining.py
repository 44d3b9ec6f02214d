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
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot, Pod, Snapshot


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
    """Yield the pods with what the cluster says of each: those that exporters have shown, and more.

    These are listed, or may work unseen. Without current evidence, one that was listed is believed
    to exist only if it may. Where an exporter has shown a pod, its unknown devices are GPUs.
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
    3. The newest list shows it alive. That may be a little older than the end, which exporters
       show; it may also be the exporter that has lost its map of pods. So the next one is awaited.
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
