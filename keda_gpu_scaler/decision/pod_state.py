"""How each pod of a workload is: whether it counts, whether its load is known, which samples count.

Pure. No sample counts from before the pod could work: a model that shows 100 % while it loads says
nothing about the work there is. Where it is known since when a pod is Ready, that is the time;
elsewhere `warmup` after its series began stands in for it.

A pod counts once its samples cover half the window, because few samples of a bursty load are often
far too high. But bursts do not fill every sample of every pod for as long as that: where all GPUs
of a workload are full, the first sample of a new pod counts. A climb from one saturated pod then
takes the start-up time and the exporter's delay for each rung, and no more.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import Enum, auto

from keda_gpu_scaler.snapshot.evidence import Readiness
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.snapshot.targets import grace_seconds
from keda_gpu_scaler.spec.spec import AVERAGED_WINDOW_SECONDS, WINDOW_SECONDS, Signal, TriggerSpec

"""The exporter's number is an average already: it needs less smoothing."""
UNKNOWN_SCRAPE_SECONDS = 30.0
"""How often a target is scraped of which that is not known yet."""
COVERED = 0.5
"""The part of the window that a pod's samples since it became Ready have to cover: the mean of one
or two samples of a bursty load is often far too high, and each pod that came of it brings another.
"""
NEVER = float("-inf")


class PodState(Enum):
    """Whether a pod's load is known right now."""

    MEASURED = auto()
    WARMING = auto()
    """Not yet."""
    MISSING = auto()
    """Not any more."""
    STARTING = auto()
    """It was never Ready: it is not one of those that should report."""
    STALLED = auto()
    """It was never Ready, for longer than any pod takes."""


NOT_READY = (PodState.STARTING, PodState.STALLED)
REPORTING = (PodState.MEASURED, PodState.WARMING)


def pod_state(spec: TriggerSpec, pod: Pod, at: float, now: float) -> PodState:
    """Return how a pod is that has not ended.

    Args:
        spec: the trigger.
        pod: the pod.
        at: the snapshot's instant: silence is measured up to here, so a failed fetch adds none.
        now: the time of the answer: the age of samples is measured up to here.
    """
    if pod.readiness is Readiness.NEVER:
        is_young = at - _created_at(pod, at) < spec.start_timeout_seconds
        return PodState.STARTING if is_young else PodState.STALLED
    patience, since = grace_seconds(pod.scrape_interval_seconds), since_when(spec, pod)
    silent = at - pod.last_seen > patience or now - pod.sampled_at > spec.max_age_seconds
    if pod.readiness is Readiness.EVER:
        is_young = at - since <= patience
        covers = pod.last_seen - since >= COVERED * window_seconds(spec, pod)
        if not covers and (is_young or not silent):
            return PodState.WARMING
    elif not silent and pod.last_seen < since:
        return PodState.WARMING
    return PodState.MEASURED if not silent and counted(spec, pod, since) else PodState.MISSING


def window_seconds(spec: TriggerSpec, pod: Pod) -> float:
    """Return the window of a pod: the trigger's, or what suits its exporter's numbers."""
    if spec.window_seconds is not None:
        return spec.window_seconds
    return AVERAGED_WINDOW_SECONDS if pod.averaged else WINDOW_SECONDS


def since_when(spec: TriggerSpec, pod: Pod) -> float:
    """Return the instant from which a pod's samples count."""
    if pod.readiness is Readiness.UNKNOWN:
        return NEVER if pod.first_seen is None else pod.first_seen + spec.warmup_seconds
    return ready_since(pod)


def ready_since(pod: Pod) -> float:
    """Return the instant from which all that is shown of a pod is about the time it was Ready.

    What an instant shows was scraped up to one scrape before and collected up to one collection
    before that; an average reaches back one more.
    """
    if pod.status is None or pod.status.ready_since is None:
        return NEVER
    collections = 2 if pod.averaged else 1
    interval = pod.scrape_interval_seconds or UNKNOWN_SCRAPE_SECONDS
    return pod.status.ready_since + interval + collections * pod.collection_seconds


def counted(spec: TriggerSpec, pod: Pod, since: float) -> Mapping[float, list[float]]:
    """Return the samples of a pod's GPUs at each instant of its window from `since` on.

    An instant with a refused sample does not count: what is left of a load is not the load.
    """
    after = pod.last_seen - window_seconds(spec, pod)
    refused = {time for gpu in pod.gpus for time in gpu.refused}
    found: dict[float, list[float]] = defaultdict(list)
    for gpu in pod.gpus:
        for time, value in zip(gpu.times, gpu.values, strict=True):
            if after < time <= pod.last_seen and time >= since and time not in refused:
                found[time].append(value)
    return found


def _created_at(pod: Pod, at: float) -> float:
    """A pod of which nobody says when it was created is taken for a new one."""
    created = pod.status.created_at if pod.status is not None else None
    return at if created is None else created


FULL = 95.0
"""What a GPU shows that could do no more; gaps between batches leave it a little below 100."""


def pod_states(spec: TriggerSpec, pods: Sequence[Pod], at: float, now: float) -> list[PodState]:
    """Return how each of a workload's pods is that have not ended.

    Args:
        spec: the trigger.
        pods: the pods that may report.
        at: the snapshot's instant: silence is measured up to here, so a failed fetch adds none.
        now: the time of the answer: the age of samples is measured up to here.
    """
    found = [pod_state(spec, pod, at, now) for pod in pods]
    if not _is_full(spec, pods, found):
        return found
    return [PodState.MEASURED if one is PodState.WARMING else one for one in found]


def _is_full(spec: TriggerSpec, pods: Sequence[Pod], found: Sequence[PodState]) -> bool:
    """Tell whether all pods show full GPUs only, and one of them has for half a window."""
    if not _has_limit(spec.signal) or not {PodState.MEASURED, PodState.WARMING} <= set(found):
        return False
    ready = [pod for pod, one in zip(pods, found, strict=True) if one not in NOT_READY]
    samples = [counted(spec, pod, since_when(spec, pod)) for pod in ready]
    return all(one and min(map(min, one.values())) >= FULL for one in samples)


def _has_limit(signal: Signal) -> bool:
    """Tell whether it shows work that ends at 100; memory is kept without any."""
    return signal.is_percentage and signal is not Signal.MEMORY
