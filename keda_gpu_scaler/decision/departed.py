"""The sum of a workload that has just lost replicas: their share is not gone with them.

Pure. The others take over what a departed replica did, but a mean over the window still has their
old, smaller loads in it: without the departed one's share it is less than the work. So the sum is
also taken at the instants at which it is complete: those when each replica that was there shows its
load. Between the time when a replica was known to work and the time when the others must show its
work as well, no instant is complete: while it drains, both may.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from keda_gpu_scaler.decision.pod_state import (
    NEVER,
    delay_seconds,
    loads,
    since_when,
    window_seconds,
    within,
)
from keda_gpu_scaler.snapshot.evidence import Readiness
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import TriggerSpec

UNTOLD_SECONDS = 60.0
"""How long an end can remain unknown: a list of pods is scraped, and a pod drains, for less."""

Loads = dict[float, float]


@dataclass(frozen=True, slots=True)
class _Gone:
    """A replica that has ended."""

    loads: Sequence[Loads]
    """The loads of its pods while they worked."""
    ready_at: float
    """From here on it may have worked."""
    shown_since: float
    """From here on its own samples are about its work."""
    worked_until: float
    taken_over_at: float
    """From here on the others show its work."""


def sum_before(
    spec: TriggerSpec, measured: Collection[Sequence[Pod]], ended: Collection[Sequence[Pod]]
) -> float:
    """Return the mean of the complete sums over one window; 0 if nothing has left within it.

    It may be of an earlier time than the present load.

    Args:
        spec: the trigger.
        measured: the pods of each replica that is measured, of which there are some.
        ended: the pods of each replica that has ended, of which there are some.
    """
    pods = [pod for group in measured for pod in group]
    window = max(window_seconds(spec, pod) for pod in pods)
    newest = max(pod.last_seen for pod in pods)
    departed = [_gone(spec, group) for group in ended]
    departed = [one for one in departed if one.loads and one.taken_over_at > newest - window]
    if not departed:
        return 0.0
    since = max([newest - spec.reach_seconds, *(since_when(spec, pod) for pod in pods)])
    there = [
        [loads(spec, within(pod, since, NEVER, newest)) for pod in group] for group in measured
    ]
    instants = set.intersection(*(set(one) for group in there for one in group))
    complete = [time for time in instants if not any(_is_between(one, time) for one in departed)]
    last = max(complete, default=NEVER)
    shown = [*there, *(one.loads for one in departed)]
    sums = [_sum(shown, time) for time in complete if time > last - window]
    return sum(sums) / len(sums) if sums else 0.0


def is_untold(
    spec: TriggerSpec, measured: Collection[Sequence[Pod]], ended: Collection[Sequence[Pod]]
) -> bool:
    """Tell whether a replica left within the window of which it is not known until when it worked.

    The cluster says so of all that exporters have shown. It is asked about the present alone: a
    process that has just started knows of no pod that ended before. Of one that no exporter has
    shown, nothing is known of its work.

    Args:
        spec: the trigger.
        measured: the pods of each replica that is measured.
        ended: the pods of each replica that has ended.
    """
    pods = [pod for group in measured for pod in group if pod.status is not None]
    if not pods:
        return False
    since = max(pod.last_seen - window_seconds(spec, pod) for pod in pods)
    return any(
        _worked_until(pod) == NEVER or pod.status is None or not pod.was_seen
        for group in ended
        for pod in group
        if _taken_over_at(pod) > since
    )


def _gone(spec: TriggerSpec, group: Sequence[Pod]) -> _Gone:
    worked_until = min(_worked_until(pod) for pod in group)
    shown = [
        loads(spec, within(pod, since_when(spec, pod), NEVER, worked_until))
        for pod in group
        if pod.readiness is not Readiness.NEVER
    ]
    return _Gone(
        [one for one in shown if one],
        min(_ready_at(pod) for pod in group),
        max(since_when(spec, pod) for pod in group),
        worked_until,
        max(_taken_over_at(pod) for pod in group),
    )


def _ready_at(pod: Pod) -> float:
    """Return the instant before which the work was done without it."""
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


def _is_between(gone: _Gone, time: float) -> bool:
    is_young = gone.ready_at <= time < gone.shown_since
    return is_young or gone.worked_until < time < gone.taken_over_at


def _sum(replicas: Iterable[Sequence[Loads]], time: float) -> float:
    """Return the sum over the replicas at one instant; a replica's load is the mean of its pods."""
    return sum(sum(one.get(time, 0.0) for one in pods) / len(pods) for pods in replicas)
