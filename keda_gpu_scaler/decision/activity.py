"""Whether a workload is in use: its busiest single GPU over the activation window.

Pure. A workload is idle only with samples over the whole window, or over the pod's whole life.
"""

import itertools
import operator
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.snapshot.targets import LEAST_GRACE_SECONDS, grace_seconds
from keda_gpu_scaler.spec.spec import TriggerSpec


@dataclass(frozen=True, slots=True)
class Activity:
    """What the workload's own GPUs say."""

    busiest: float | None
    """The largest value of any GPU in the window; None without a usable sample."""
    active: bool
    covered: bool
    """The samples cover the window well enough to call the workload idle."""
    averaged: bool = False
    """Its samples are averages, in which work between two of them shows as well."""


def activity(spec: TriggerSpec, pods: Iterable[Pod], at: float, now: float) -> Activity:
    """Return the activity of the workload's pods; ended pods and stale samples do not count.

    Args:
        spec: the trigger.
        pods: the workload's pods.
        at: the snapshot's instant, where the window ends.
        now: the time of the answer, for the age of samples.
    """
    usable = [pod for pod in pods if not pod.ended and now - pod.sampled_at <= spec.max_age_seconds]
    since = at - spec.activation_window_seconds
    values = [value for pod in usable for value in _values(pod, since)]
    busiest = max(values, default=None)
    return Activity(
        busiest=busiest,
        active=busiest is not None and busiest > spec.activation_threshold,
        covered=bool(usable) and all(_covered(pod, since, at) for pod in usable),
        averaged=bool(usable) and all(pod.averaged for pod in usable),
    )


def in_use_unnamed(spec: TriggerSpec, pod: Pod, at: float) -> bool:
    """Tell whether a pod was in use within the window, and its exporter may have lost its map.

    Args:
        spec: the trigger.
        pod: a pod that exporters do not show any more.
        at: the snapshot's instant, where the window ends.
    """
    since = at - spec.activation_window_seconds
    was_seen_busy = pod.busy_unnamed_at is not None and pod.busy_unnamed_at > since
    was_busy = any(value > spec.activation_threshold for value in _values(pod, since))
    return pod.is_unnamed and (was_seen_busy or was_busy)


def _values(pod: Pod, since: float) -> Sequence[float]:
    """Return all values of its GPUs after `since`."""
    shown = [gpu.values[bisect_right(gpu.times, since) :] for gpu in pod.gpus]
    return shown[0] if len(shown) == 1 else tuple(itertools.chain.from_iterable(shown))


def _covered(pod: Pod, since: float, at: float) -> bool:
    ready_since = None if pod.status is None else pod.status.ready_since
    start = since if pod.first_seen is None else max(since, pod.first_seen)
    start = start if ready_since is None else max(start, ready_since)
    grace = grace_seconds(pod.scrape_interval_seconds)
    current = [gpu for gpu in pod.gpus if gpu.last > pod.last_seen - LEAST_GRACE_SECONDS]
    # A window shorter than the patience fits into a gap: it would count as covered without samples.
    return bool(current) and all(
        gpu.times
        and gpu.times[-1] > since
        and _longest_gap([start, *gpu.times[bisect_right(gpu.times, start) :], at]) <= grace
        for gpu in current
    )


def _longest_gap(times: Sequence[float]) -> float:
    gaps: Iterable[float] = map(operator.sub, times[1:], times)
    return max(gaps)
