"""Which pods there are: what was seen before, carried forward by what is seen now.

Pure. This is the exporter-only evidence: a pod that vanished has *ended* only if a later good
scrape of its own target lacked it; if it was in its target's last good scrape it is missing, and
nobody knows how it is. Absence right after a target (or the whole source) came back proves nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from keda_gpu_scaler import health, sighting
from keda_gpu_scaler.health import Health
from keda_gpu_scaler.observation import GpuReports, Observation, Series, Target, uuid_of
from keda_gpu_scaler.sighting import PodKey
from keda_gpu_scaler.snapshot import Pod

MISSING_PODS_KEPT = 20_000
"""Bound on what is remembered of pods that vanished together with their exporters."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Everything remembered between two observations."""

    at: float | None = None
    pods: Mapping[PodKey, Pod] = field(default_factory=dict)
    targets: Mapping[Target, Health] = field(default_factory=dict)


def advance(
    ledger: Ledger, observation: Observation, gpus: GpuReports, forget_seconds: float
) -> Ledger:
    """Return the ledger after an observation.

    Args:
        ledger: what was known before.
        observation: what the source shows now.
        gpus: where the GPUs named by `absent_gpus` are now.
        forget_seconds: how long an ended pod stays in the ledger.
    """
    runs, targets = health.advance(ledger.targets, ledger.at, observation)
    scene = sighting.Scene(observation, runs, targets)
    pods = dict(ledger.pods)
    for key, group in _by_pod(observation.series).items():
        pods[key] = sighting.seen(scene, key, pods.get(key), group)
    for key in [key for key, pod in pods.items() if _is_absent(pod, observation.at)]:
        pods[key] = sighting.looked_for(scene, pods[key], gpus)
    kept = _kept(pods, observation.at, forget_seconds)
    return Ledger(observation.at, kept, _watched(targets, kept, observation.at - forget_seconds))


def absent_gpus(ledger: Ledger, observation: Observation) -> frozenset[str]:
    """Return the UUIDs of the GPUs whose pods are gone now and not known to have ended."""
    at = observation.at
    here = {(one.namespace, one.pod) for one in observation.series if one.present[-1] >= at}
    known = {
        gpu.gpu
        for key, pod in ledger.pods.items()
        if key not in here and not pod.ended
        for gpu in pod.gpus
    }
    new = {
        one.gpu
        for one in observation.series
        if (one.namespace, one.pod) not in here and (one.namespace, one.pod) not in ledger.pods
    }
    return frozenset(uuid_of(gpu) for gpu in known | new)


def join(ledger: Ledger, history: Ledger) -> Ledger:
    """Return `ledger` with the pods of namespaces that were not asked about before."""
    return Ledger(
        history.at if ledger.at is None else ledger.at,
        {**history.pods, **ledger.pods},
        {**history.targets, **ledger.targets},
    )


def confined(ledger: Ledger, namespaces: Iterable[str]) -> Ledger:
    """Return the ledger without the pods of namespaces nobody asks about any more."""
    kept = frozenset(namespaces)
    return replace(ledger, pods={key: pod for key, pod in ledger.pods.items() if key[0] in kept})


def _by_pod(series: Iterable[Series]) -> dict[PodKey, list[Series]]:
    grouped: dict[PodKey, list[Series]] = defaultdict(list)
    for one in series:
        grouped[one.namespace, one.pod].append(one)
    return grouped


def _is_absent(pod: Pod, at: float) -> bool:
    return pod.last_seen < at and not pod.ended


def _watched(
    targets: Mapping[Target, Health], pods: Mapping[PodKey, Pod], since: float
) -> dict[Target, Health]:
    """Let go of targets that were good long ago and that no remembered pod was seen by."""
    named = {target for pod in pods.values() for target in pod.targets}
    return {
        target: state
        for target, state in targets.items()
        if state.last_good >= since or target in named
    }


def _kept(pods: Mapping[PodKey, Pod], at: float, forget_seconds: float) -> dict[PodKey, Pod]:
    kept = {
        key: pod
        for key, pod in pods.items()
        if not (pod.ended and at - pod.last_seen > forget_seconds)
    }
    missing = [key for key, pod in kept.items() if _is_absent(pod, at)]
    missing.sort(key=lambda key: kept[key].last_seen)
    for key in missing[: max(0, len(missing) - MISSING_PODS_KEPT)]:
        del kept[key]
    return kept
