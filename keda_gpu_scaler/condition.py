"""How one pod is: whether it counts, whether its load is known, and which of its samples count.

Pure. No sample counts from before the pod could work: a model that shows 100 % while it loads says
nothing about the work there is. Where it is known since when a pod is Ready, that is the time;
elsewhere `warmup` after its series began stands in for it.
"""

from collections import defaultdict
from collections.abc import Mapping
from enum import Enum, auto

from keda_gpu_scaler import health
from keda_gpu_scaler.evidence import Readiness
from keda_gpu_scaler.snapshot import Pod
from keda_gpu_scaler.spec import TriggerSpec

WINDOW_SECONDS = 120.0
AVERAGED_WINDOW_SECONDS = 60.0
"""The exporter's number is an average already: it needs less smoothing."""
UNKNOWN_SCRAPE_SECONDS = 30.0
"""How often a target is scraped of which that is not known yet."""
COVERED = 0.5
"""The part of the window that a pod's samples since it became Ready have to cover: the mean of one
or two samples of a bursty load is often far too high, and each pod that came of it brings another.
"""
NEVER = float("-inf")


class Reporting(Enum):
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


NOT_READY = (Reporting.STARTING, Reporting.STALLED)
REPORTING = (Reporting.MEASURED, Reporting.WARMING)


def of(spec: TriggerSpec, pod: Pod, at: float, now: float) -> Reporting:
    """Return how a pod is that has not ended.

    Args:
        spec: the trigger.
        pod: the pod.
        at: the snapshot's instant: silence is measured up to here, so a failed fetch adds none.
        now: the time of the answer: the age of samples is measured up to here.
    """
    if pod.readiness is Readiness.NEVER:
        is_young = at - _created_at(pod, at) < spec.start_timeout_seconds
        return Reporting.STARTING if is_young else Reporting.STALLED
    patience, since = health.patience_seconds(pod.scrape_interval_seconds), since_when(spec, pod)
    silent = at - pod.last_seen > patience or now - pod.sampled_at > spec.max_age_seconds
    if pod.readiness is Readiness.EVER:
        is_young = at - since <= patience
        covers = pod.last_seen - since >= COVERED * window_seconds(spec, pod)
        if not covers and (is_young or not silent):
            return Reporting.WARMING
    elif not silent and pod.last_seen < since:
        return Reporting.WARMING
    return Reporting.MEASURED if not silent and counted(spec, pod, since) else Reporting.MISSING


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
