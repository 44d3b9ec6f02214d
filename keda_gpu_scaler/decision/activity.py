"""Whether a workload is in use: its busiest single GPU over the activation window.

Pure. A workload is idle only with samples over the whole window, or over the pod's whole life. One
at zero has no GPU that could be busy: only the signals of `activation` wake it.
"""

import operator
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from keda_gpu_scaler.decision.pod_state import NEVER, is_freed
from keda_gpu_scaler.snapshot.observation import grace_seconds
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.times import LEAST_GRACE_SECONDS


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

    The window ends at `at`, the snapshot's instant; `now`, the time of the answer, is for the age
    of samples.
    """
    usable = [pod for pod in pods if not pod.ended and now - pod.sampled_at <= spec.max_age_seconds]
    since = at - spec.activation_window_seconds
    peaks, covered, averaged = list[float](), bool(usable), bool(usable)
    for pod in usable:
        for gpu in pod.gpus:
            values = gpu.values[bisect_right(gpu.times, since) :]
            if values:
                peaks.append(max(values))
        until = pod.ended_at if is_freed(spec, pod, at) else at
        covered = covered and _covered(pod, since, until)
        averaged = averaged and pod.averaged
    busiest = max(peaks, default=None)
    return Activity(
        busiest=busiest,
        active=busiest is not None and busiest > spec.activation_threshold,
        covered=covered,
        averaged=averaged,
    )


def _covered(pod: Pod, since: float, at: float) -> bool:
    if pod.contradicted_at > since:  # it may have worked then
        return False
    start = max(since, pod.first_seen, pod.status.ready_since if pod.status else NEVER)
    grace = grace_seconds(pod.scrape_interval_seconds)
    is_current = False
    for gpu in pod.gpus:
        # One that was silent for longer than the least grace is a GPU that the pod had before.
        if gpu.last > pod.last_seen - LEAST_GRACE_SECONDS:
            is_current = True
            # A window shorter than the patience fits into a gap: it would count without samples.
            if not gpu.times or gpu.times[-1] <= since:
                return False
            times = [start, *gpu.times[bisect_right(gpu.times, start) :], at]
            if max(map(operator.sub, times[1:], times)) > grace:
                return False
    return is_current
