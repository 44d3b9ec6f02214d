"""The sum over a workload's replicas, as a mean over time, while replicas come and go.

Pure. A sum is complete at the instants at which each replica that was there shows its load. Between
the time when a replica is Ready and the time when its own samples count, no instant is complete:
the others do less already. Nor is one between the time when a replica was last known to work and
the time when the others must show its work as well: while it drains, both may.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from keda_gpu_scaler.decision.newest import newest
from keda_gpu_scaler.decision.pod_state import (
    COVERED,
    NEVER,
    NOT_READY,
    REPORTING,
    UNKNOWN_SCRAPE_SECONDS,
    Loads,
    PodState,
    Reported,
    delay_seconds,
    loads,
    mean,
    mean_load,
    replica_of,
    since_when,
    within,
)
from keda_gpu_scaler.snapshot.evidence import Readiness
from keda_gpu_scaler.snapshot.snapshot import GpuSamples, Pod
from keda_gpu_scaler.spec.spec import TriggerSpec

UNTOLD_SECONDS = 60.0
"""How long an end can remain unknown: a list of pods is scraped, and a pod drains, for less."""


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums over a workload's replicas."""

    summed: float = 0.0
    """The sum over the replicas that report, as a mean over time."""
    before: float = 0.0
    """The same with those that have ended since, if that was recently."""
    is_brief: bool = False
    """Those that report have been shown together for less than half a window."""
    newest: float = 0.0
    """The sum over the newest samples; 0: no recent instant shows all that report."""
    are_full: bool = False
    """Those that report have each been full for a minute, or since its samples count."""
    is_untold: bool = False
    """One has ended recently, and it is not known until when it worked, or what it did."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One replica's part of the sum."""

    loads: Sequence[Loads]
    """Of each of its pods, while they worked."""
    ready_at: float
    """From here on it may have worked."""
    taken_over_at: float = float("inf")
    """From here on the others show its work."""

    def is_known(self, time: float) -> bool:
        """Tell whether it shows its work at an instant, or has none."""
        is_shown = bool(self.loads) and all(time in pod for pod in self.loads)
        return is_shown or not self.ready_at <= time < self.taken_over_at

    def load(self, time: float) -> float:
        """Return its load at an instant, which is the mean of its pods."""
        return sum(pod.get(time, 0.0) for pod in self.loads) / len(self.loads)


def sums(
    spec: TriggerSpec,
    pods: Sequence[Pod],
    groups: Sequence[Sequence[Reported]],
    measured: Sequence[float],
    at: float,
) -> Sums:
    """Return the sums over the replicas that report.

    `pods` are all of the workload, `groups` those of each replica that should report, now or once
    it is Ready, and `measured` the known loads.
    """
    ready = [
        group for group in groups if all(reported.state not in NOT_READY for reported in group)
    ]
    reporting = [group for group in ready if all(reported.state in REPORTING for reported in group)]
    if not reporting:
        return Sums()
    newest_sum, are_full = newest(spec, reporting, at, is_lone=len(ready) == 1)
    ended = _ended(spec, pods, groups)
    waiting = [
        reported.pod.status for group in groups for reported in group if reported.state in NOT_READY
    ]
    are_steady = all(_is_steady(pod) for group in reporting for pod in group)
    summed = _of_one_window(spec, reporting) if are_steady else 0.0
    if are_steady and not ended and not waiting:
        return Sums(summed, newest=newest_sum, are_full=are_full)
    listed_at = min((status.listed_at for status in waiting if status), default=math.inf)
    over = _over_time(spec, reporting, ended, listed_at)
    return replace(
        over,
        summed=max(over.summed, summed),
        is_brief=over.is_brief and not are_steady,
        newest=newest_sum,
        are_full=are_full,
        is_untold=bool(measured) and (over.is_untold or _is_untold(reporting, ended)),
    )


def _ended(
    spec: TriggerSpec, pods: Sequence[Pod], groups: Sequence[Sequence[Reported]]
) -> Collection[Sequence[Pod]]:
    """Return the pods of each replica that has ended as a whole."""
    ended: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.ended and (pod.gpus or (pod.status is not None and pod.status.may_work_unseen)):
            ended[replica_of(spec, pod)].append(pod)
    for group in groups if ended else ():
        ended.pop(replica_of(spec, group[0].pod), None)
    return ended.values()


def _is_steady(reported: Reported) -> bool:
    """Tell whether a pod is measured by all samples of its window, as most are."""
    began = reported.pod.last_seen - reported.window_seconds
    if reported.state is not PodState.MEASURED or reported.since > began:
        return False
    half = began + (1 - COVERED) * reported.window_seconds
    return all(_first_after(gpu, began) <= half for gpu in reported.pod.gpus)


def _of_one_window(spec: TriggerSpec, replicas: Collection[Sequence[Reported]]) -> float:
    """Return the sum over steady replicas, each as its mean over the same window.

    It ends when each was still seen. One that just went has no newer samples, and in those of the
    others they do its work.
    """
    until = min(reported.pod.last_seen for group in replicas for reported in group)
    return sum(mean([_load_until(until, spec, pod) for pod in group]) for group in replicas)


def _load_until(until: float, spec: TriggerSpec, reported: Reported) -> float:
    """Return a pod's load in the window that ends then; without a sample in it, its newest load."""
    pod, load = reported.pod, None
    if pod.last_seen > until:
        load = mean_load(spec, pod, reported.since, reported.window_seconds, until)
    return reported.load if load is None else load


def _first_after(gpu: GpuSamples, began: float) -> float:
    """Return when a GPU was first there since then, with a number or without; not at all: then.

    A pod that takes turns on a GPU is there without a number in between.
    """
    shown = [times for times in (gpu.times, gpu.refused) if times and times[-1] > began]
    return min([times[bisect_right(times, began)] for times in shown], default=began)


def _over_time(
    spec: TriggerSpec,
    replicas: Collection[Sequence[Reported]],
    ended: Collection[Sequence[Pod]],
    listed_at: float,
) -> Sums:
    """Return the sum as a mean over the complete instants of one window.

    It ends with the newest of them, which may be from before a replica came or went. The pods are
    those of each replica that reports, of which there are some, and of each that has ended. At
    `listed_at` the cluster showed last that others are not Ready; they may be since.
    """
    pods = [reported for group in replicas for reported in group]
    window = max(reported.window_seconds for reported in pods)
    last = max(reported.pod.last_seen for reported in pods)
    left = [_part_of_ended(spec, group) for group in ended]
    has_left = any(part.loads and part.taken_over_at > last - window for part in left)
    here = [_part_of_replica(spec, group, last - spec.reach_seconds) for group in replicas]
    times = {time for part in here for pod in part.loads for time in pod}
    complete = {
        time for time in times if time <= listed_at and all(part.is_known(time) for part in here)
    }
    began = max(part.ready_at for part in here)
    shared = {time for time in complete if began <= time > last - window}
    interval = max(reported.pod.scrape_interval_seconds for reported in pods)
    interval = interval or UNKNOWN_SCRAPE_SECONDS
    # A source may look at samples less often than they are scraped.
    interval = max(
        interval, min((after - time for time, after in pairwise(sorted(times))), default=0)
    )
    is_brief = last - min(shared, default=last) + interval < COVERED * window or not shared
    # Each of these is a part of the work: before a replica came, the others may have been full.
    spans = [complete, {time for time in times if time > last - window}]
    if not is_brief:
        spans.append(shared)
    whole = {time for time in complete if all(part.is_known(time) for part in left)}
    shown = [*here, *(part for part in left if part.loads)]
    with_left = [whole, {time for time in whole if time >= began}] if has_left else []
    worked = [part for part in left if part.ready_at < part.taken_over_at > last - window]
    return Sums(
        max(_mean_sum(here, span, window) for span in spans),
        max((_mean_sum(shown, span, window) for span in with_left), default=0.0),
        is_brief,
        is_untold=bool(worked) and not (whole and all(part.loads for part in worked)),
    )


def _is_untold(replicas: Collection[Sequence[Reported]], ended: Collection[Sequence[Pod]]) -> bool:
    """Tell whether a replica left within the window of which it is not known until when it worked.

    The cluster says so of all that exporters have shown. It is asked about the present alone: a
    process that has just started knows of no pod that ended before. Of one that no exporter has
    shown, nothing is known of its work.
    """
    listed = [
        reported for group in replicas for reported in group if reported.pod.status is not None
    ]
    if not listed:
        return False
    since = max(reported.pod.last_seen - reported.window_seconds for reported in listed)
    return any(
        _worked_until(pod) == NEVER or pod.status is None or not pod.was_seen
        for group in ended
        for pod in group
        if _taken_over_at(pod) > since
    )


def _part_of_replica(spec: TriggerSpec, group: Sequence[Reported], since: float) -> _Part:
    return _Part(
        [
            loads(
                spec,
                within(reported.pod, max(since, reported.since), NEVER, reported.pod.last_seen),
            )
            for reported in group
        ],
        min(_ready_at(reported.pod) for reported in group),
    )


def _part_of_ended(spec: TriggerSpec, group: Sequence[Pod]) -> _Part:
    worked_until = min(_worked_until(pod) for pod in group)
    pod_loads = [
        loads(spec, within(pod, since_when(spec, pod), NEVER, worked_until))
        for pod in group
        if pod.readiness is not Readiness.NEVER
    ]
    return _Part(
        [loads_of_pod for loads_of_pod in pod_loads if loads_of_pod],
        min(_ready_at(pod) for pod in group),
        max(_taken_over_at(pod) for pod in group),
    )


def _ready_at(pod: Pod) -> float:
    """Return the instant before which the work was done without it."""
    if pod.readiness is Readiness.NEVER:
        return float("inf")
    ready = pod.first_seen if pod.status is None else pod.status.ready_since
    return NEVER if ready is None else ready


def _worked_until(pod: Pod) -> float:
    """Return the instant up to which the samples of an ended pod are about its work."""
    return pod.last_seen - UNTOLD_SECONDS if pod.status is None else pod.status.alive_at


def _taken_over_at(pod: Pod) -> float:
    """Return the instant from which on all samples of the others are about its work as well."""
    if pod.status is None:
        return pod.last_seen + delay_seconds(pod)
    ended = pod.status.ended_at
    ended = pod.status.alive_at + UNTOLD_SECONDS if ended is None else ended
    return ended + delay_seconds(pod)


def _mean_sum(replicas: Sequence[_Part], times: Collection[float], window: float) -> float:
    """Return the mean of the sums in the window that ends with the newest of some instants."""
    last = max(times, default=0.0)
    sums = [sum(part.load(time) for part in replicas) for time in times if time > last - window]
    return mean(sums) if sums else 0.0
