"""The sum over a workload's replicas, as a mean over time, while replicas come and go.

Pure. A sum is complete at the instants at which each replica that was there shows its load. Between
the time when a replica is Ready and the time when its own samples count, no instant is complete:
the others do less already. Nor is one between the time when a replica was last known to work and
the time when the others must show its work as well: while it drains, both may.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from keda_gpu_scaler.decision.pod_state import (
    COVERED,
    NEVER,
    UNKNOWN_SCRAPE_SECONDS,
    Loads,
    Reported,
    delay_seconds,
    loads,
    mean,
    since_when,
    within,
)
from keda_gpu_scaler.snapshot.evidence import Readiness
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import TriggerSpec

UNTOLD_SECONDS = 60.0
"""How long an end can remain unknown: a list of pods is scraped, and a pod drains, for less."""


@dataclass(frozen=True, slots=True)
class OverTime:
    """The sum over the replicas, as a mean over one window of complete instants."""

    total: float
    before: float = 0.0
    """The same with those that have left; 0 if none has recently."""
    is_brief: bool = False
    """All replicas together have been shown for less than half a window."""


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


def over_time(
    spec: TriggerSpec,
    replicas: Collection[Sequence[Reported]],
    ended: Collection[Sequence[Pod]],
    listed_at: float,
) -> OverTime:
    """Return the sum as a mean over the complete instants of one window.

    It ends with the newest of them, which may be from before a replica came or went. The pods are
    those of each replica that reports, of which there are some, and of each that has ended. At
    `listed_at` the cluster showed last that others are not Ready; they may be since.
    """
    pods = [reported for group in replicas for reported in group]
    window = max(reported.window_seconds for reported in pods)
    newest = max(reported.pod.last_seen for reported in pods)
    left = [_part_of_ended(spec, group) for group in ended]
    has_left = any(part.loads and part.taken_over_at > newest - window for part in left)
    here = [_part_of_replica(spec, group, newest - spec.reach_seconds) for group in replicas]
    times = {time for part in here for pod in part.loads for time in pod}
    complete = {
        time for time in times if time <= listed_at and all(part.is_known(time) for part in here)
    }
    began = max(part.ready_at for part in here)
    shared = {time for time in complete if began <= time > newest - window}
    interval = max(reported.pod.scrape_interval_seconds for reported in pods)
    interval = interval or UNKNOWN_SCRAPE_SECONDS
    # A source may look at samples less often than they are scraped.
    interval = max(
        interval, min((after - time for time, after in pairwise(sorted(times))), default=0)
    )
    is_brief = newest - min(shared, default=newest) + interval < COVERED * window or not shared
    # Each of these is a part of the work: before a replica came, the others may have been full.
    spans = [complete, {time for time in times if time > newest - window}]
    if not is_brief:
        spans.append(shared)
    whole = {time for time in complete if all(part.is_known(time) for part in left)}
    shown = [*here, *(part for part in left if part.loads)]
    with_left = [whole, {time for time in whole if time >= began}] if has_left else []
    return OverTime(
        max(_mean_sum(here, span, window) for span in spans),
        max((_mean_sum(shown, span, window) for span in with_left), default=0.0),
        is_brief,
    )


def is_untold(replicas: Collection[Sequence[Reported]], ended: Collection[Sequence[Pod]]) -> bool:
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
