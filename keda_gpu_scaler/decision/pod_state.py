"""The state of each pod: whether it counts, whether its load is known, which samples count.

Pure. Samples from before the pod was Ready do not count: a model that shows 100 % while it loads
says nothing about its work. Where the Ready time is unknown, `warmup` after the pod's series began
is used instead.

A pod is measured once its samples cover half the window, because a few samples of a bursty load are
often far too high. Before that they can only raise (`lives.newest`).
"""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from keda_gpu_scaler.snapshot.evidence import Readiness
from keda_gpu_scaler.snapshot.observation import grace_seconds
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import (
    AVERAGED_WINDOW_SECONDS,
    WINDOW_SECONDS,
    GpuAggregation,
    Signal,
    TriggerSpec,
)
from keda_gpu_scaler.spec.workload import Owner
from keda_gpu_scaler.times import NO_GPU_SECONDS, REMEMBERED_SECONDS, UNKNOWN_SCRAPE_SECONDS

COVERED = 0.5
"""The part of the window that a pod's samples since it became Ready have to cover: the mean of one
or two samples of a bursty load is often far too high, and each needless pod causes another.
"""
ONE_TEMPLATE = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "Job", "PodClique"})
"""The kinds of controllers of which all pods ask for the same."""
FULL = 95.0
"""What a saturated GPU shows; gaps between batches leave it a little below 100."""
NEVER = float("-inf")
Loads = Mapping[float, float]
"""A pod's or a replica's load at each instant."""


class PodState(Enum):
    """Whether a pod's load is known right now."""

    MEASURED = auto()
    WARMING = auto()
    """Its load is not known yet."""
    MISSING = auto()
    """Its load is not known any more, and the cluster does not say that it is Ready."""
    SILENT = auto()
    """Its load is not known any more, and the cluster says that it is Ready: it works unseen."""
    UNSEEN = auto()
    """It may ask for a GPU and has been Ready for long, and no exporter ever showed a GPU of it,
    while others of the workload were shown for as long."""
    STARTING = auto()
    """It was never Ready, so it need not report."""
    STALLED = auto()
    """It was never Ready within startTimeout."""


NOT_READY = (PodState.STARTING, PodState.STALLED)
NOT_SEEN = (PodState.MISSING, PodState.UNSEEN, PodState.SILENT)
REPORTING = (PodState.MEASURED, PodState.WARMING)


@dataclass(frozen=True, slots=True)
class Reported:
    """One pod with its state and load."""

    pod: Pod
    since: float
    """From here on its samples count."""
    window_seconds: float
    state: PodState
    load: float = 0.0
    """Only of one that is measured."""

    @property
    def is_covered(self) -> bool:
        """Whether its samples that count cover enough of its window."""
        return self.pod.last_seen - self.since >= COVERED * self.window_seconds

    @property
    def lacks_past(self) -> bool:
        """Whether it may have run in a part of its window of which its source has no samples.

        A source that is scraped directly has none from before this process. The first samples of a
        load in bursts are not its mean.
        """
        return self.since < self.pod.sampled_since > self.pod.last_seen - self.window_seconds


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica: a pod, or a group of pods."""

    name: str
    state: PodState
    load: float
    """0 while it is not known."""
    pods: Sequence[Reported]

    @property
    def is_never_named(self) -> bool:
        """Whether it has a pod that does not report, and that no exporter has ever named."""
        return any(
            reported.state in NOT_SEEN and not reported.pod.was_seen for reported in self.pods
        )

    @property
    def is_unnamed(self) -> bool:
        """Whether GPUs of one of its pods are shown without a pod now."""
        return any(reported.pod.is_unnamed for reported in self.pods)


def expected_pods(
    spec: TriggerSpec, pods: Sequence[Pod], at: float, now: float
) -> tuple[list[Reported], tuple[str, ...]]:
    """Return the pods that may report, and the names of those that are Ready and have no GPU.

    Silence is measured up to the snapshot's instant `at`: a failed fetch adds none. The age of
    samples is measured up to `now`. A pod that disappeared with its exporter counts as missing for
    `REMEMBERED_SECONDS` while others report, unless the cluster says that it exists; it does not
    come back when the others end.

    That a pod does not count is decided in this order:

    1. `attribution`: it never existed.
    2. `reported_pods`: exporters show its end.
    3. `pod_status`: the cluster shows that it is gone, or that it still exists.
    4. `load.pods_of`: it has another owner, or its owner has no replicas. By exporters alone, one
       that may still be in use (`in_use_unnamed`) has not ended.
    5. Here: it has no GPU, or is given up an hour after the last of the others.
    """
    alive = [pod for pod in pods if not pod.ended]
    known = {pod.name for pod in listed(alive) if pod.readiness is not Readiness.UNKNOWN}
    candidates = [pod for pod in alive if pod.was_seen or pod.name in known]
    shown = _controllers_of_shown(candidates)
    ignored = {
        pod.name
        for pod in candidates
        if not pod.was_seen
        and shown.isdisjoint(pod.owners)
        and _has_no_gpu(spec, pod, candidates, at)
    }
    counted = [pod for pod in candidates if pod.name not in ignored]
    are_shown = _are_shown_for_long(counted, at)
    every = [_reported(spec, pod, at, now, are_shown=are_shown) for pod in counted]
    if any(_may_load(spec, pod, at) for pod in counted) and _was_one_full(spec, every):
        every = [_once_busy(spec, reported, at) for reported in every]
    # Nothing has shown some for an hour before the newest of all, and nothing says that they exist.
    given_up_at = max((pod.last_seen for pod in pods), default=NEVER) - REMEMBERED_SECONDS
    kept = [
        reported
        for reported in every
        if reported.state is not PodState.MISSING
        or reported.pod.shown_at + reported.pod.unsure_seconds >= given_up_at
    ]
    return kept, tuple(sorted(ignored))


def listed(pods: Sequence[Pod]) -> list[Pod]:
    """Return the listed pods that may ask for a GPU; all listed ones if none does."""
    every, shown = [pod for pod in pods if pod.status], _controllers_of_shown(pods)
    if all(pod.asks_gpu is False for pod in every):
        return every
    return [pod for pod in every if pod.asks_gpu is not False or not shown.isdisjoint(pod.owners)]


def _controllers_of_shown(pods: Sequence[Pod]) -> set[Owner]:
    """Return the controllers of pods that ask for no GPU, and of which an exporter showed one.

    Their other pods have one as well: a scheduler may give parts of GPUs in another way.
    """
    return {
        owner
        for pod in pods
        if pod.status and pod.status.asks_gpu is False and pod.was_seen
        for owner in pod.status.owners
        if owner.kind in ONE_TEMPLATE
    }


def _has_no_gpu(spec: TriggerSpec, pod: Pod, siblings: Sequence[Pod], at: float) -> bool:
    """Tell whether a pod that showed no GPU asks for none, Ready beside others for long enough.

    Where it is unknown what it asks for, the others are those of its group: pods alike work alike.
    """
    if pod.status is None or pod.asks_gpu:
        return False
    if pod.asks_gpu is None:
        replica = replica_of(spec, pod)
        siblings = [sibling for sibling in siblings if replica_of(spec, sibling) == replica]
    lasting = pod.readiness is Readiness.EVER and ready_since(pod) <= at - NO_GPU_SECONDS
    return lasting and _are_shown_for_long(siblings, at)


def _are_shown_for_long(pods: Sequence[Pod], at: float) -> bool:
    """Tell whether exporters have shown one of the pods for so long that they would show all."""
    since = at - NO_GPU_SECONDS
    return any(pod.was_seen and pod.first_seen <= since for pod in pods)


def replica_of(spec: TriggerSpec, pod: Pod) -> str:
    """Name the replica that a pod of the workload is part of: itself, or its group."""
    return spec.pods.replica_of(pod.name, pod.owners)


_WORST_FIRST = (*NOT_READY, *NOT_SEEN, PodState.WARMING, PodState.MEASURED)


def replicas_of(spec: TriggerSpec, expected: Iterable[Reported]) -> list[Replica]:
    """Return the replicas by their names, each as well known as its least known pod."""
    groups: dict[str, list[Reported]] = defaultdict(list)
    for reported in expected:
        groups[replica_of(spec, reported.pod)].append(reported)
    replicas = []
    for name, group in sorted(groups.items()):
        state = min([reported.state for reported in group], key=_WORST_FIRST.index)
        is_measured = state is PodState.MEASURED
        load = mean([reported.load for reported in group]) if is_measured else 0.0
        replicas.append(Replica(name, state, load, group))
    return replicas


def _reported(spec: TriggerSpec, pod: Pod, at: float, now: float, *, are_shown: bool) -> Reported:
    """Return a pod that has not ended with its state; `are_shown`: others have been for long."""
    not_seen = _not_seen(pod, at, are_shown=are_shown)
    reported = Reported(pod, since_when(spec, pod), window_seconds(spec, pod), not_seen)
    readiness = pod.readiness
    if readiness is Readiness.NEVER:
        created_at = pod.status.created_at if pod.status else None
        # One with unknown creation time counts as new.
        is_young = created_at is None or at - created_at < spec.start_timeout_seconds
        return replace(reported, state=PodState.STARTING if is_young else PodState.STALLED)
    if pod.is_unnamed:  # its last load may be with the others by now
        return reported
    grace = grace_seconds(pod.scrape_interval_seconds)
    is_warming = readiness is Readiness.EVER and not reported.is_covered
    # Not `>`: a comparison with NaN is false, and what cannot be compared is not fresh.
    if at - pod.last_seen <= grace and now - pod.sampled_at <= spec.max_age_seconds:
        is_warming = is_warming or pod.last_seen < reported.since or reported.lacks_past
        load = None if is_warming else mean_load(spec, reported, pod.last_seen)
        if load is not None:
            return replace(reported, state=PodState.MEASURED, load=load)
    elif at - reported.since > grace:
        is_warming = False
    return replace(reported, state=PodState.WARMING) if is_warming else reported


def _may_load(spec: TriggerSpec, pod: Pod, at: float) -> bool:
    """Tell whether a pod is young, and nothing says since when it has been Ready."""
    is_young = at - pod.first_seen < spec.start_timeout_seconds
    return is_young and pod.readiness is Readiness.UNKNOWN


def _was_one_full(spec: TriggerSpec, expected: Sequence[Reported]) -> bool:
    """Tell whether a pod was full for half a window, as far as samples reach back."""
    full = full_load(spec, expected)
    return any(
        load >= full for reported in expected for load in half_loads(spec, reported.pod).values()
    )


def _once_busy(spec: TriggerSpec, reported: Reported, at: float) -> Reported:
    """Return a pod beside full ones; if its model may load, by its samples since it was busy.

    Beside full ones it would have work: while it is idle it still loads, longer than `warmup`.
    """
    pod = reported.pod
    if reported.state is not PodState.MEASURED or not _may_load(spec, pod, at):
        return reported
    busy = (
        time
        for gpu in pod.gpus
        for time, value in zip(gpu.times, gpu.values, strict=True)
        if value > spec.activation_threshold
    )
    busy_since = min(busy, default=math.inf)
    if busy_since <= reported.since:
        return reported
    later = replace(reported, since=min(busy_since, pod.last_seen))
    load = mean_load(spec, later, pod.last_seen)
    if load is None or not later.is_covered:
        return replace(reported, state=PodState.WARMING)
    return replace(later, load=load)


def _not_seen(pod: Pod, at: float, *, are_shown: bool) -> PodState:
    """Return the state of a pod that is believed to work and shows no load.

    Where samples have just begun, those of a pod that was never shown may still come.
    """
    status = pod.status
    if status is None or not status.ready:
        return PodState.MISSING
    if pod.was_seen:
        return PodState.SILENT
    lasting = are_shown and at - ready_since(pod) >= NO_GPU_SECONDS
    return PodState.UNSEEN if pod.readiness is Readiness.EVER and lasting else PodState.MISSING


def window_seconds(spec: TriggerSpec, pod: Pod) -> float:
    """Return the window of a pod: the trigger's, or the default for its exporter's numbers."""
    if spec.window_seconds is not None:
        return spec.window_seconds
    return AVERAGED_WINDOW_SECONDS if pod.averaged else WINDOW_SECONDS


def since_when(spec: TriggerSpec, pod: Pod) -> float:
    """Return the instant from which a pod's samples count."""
    if pod.status is None or pod.status.readiness is Readiness.UNKNOWN:
        delay = delay_seconds(pod) if spec.warmup_seconds else 0.0
        return pod.first_seen + delay + spec.warmup_seconds
    return ready_since(pod)


def ready_since(pod: Pod) -> float:
    """Return the instant from which a pod's samples are about the time since it was Ready."""
    return NEVER if pod.status is None else pod.status.ready_since + delay_seconds(pod)


def delay_seconds(pod: Pod) -> float:
    """Return how old a pod's samples can be.

    A sample was scraped up to one scrape interval before its instant and collected up to one
    collection interval before that; an average reaches back one more.
    """
    collections = 2 if pod.averaged else 1
    interval = pod.scrape_interval_seconds or UNKNOWN_SCRAPE_SECONDS
    return interval + collections * pod.collection_seconds


def within(pod: Pod, since: float, after: float, until: float) -> Mapping[float, list[float]]:
    """Return the samples of a pod's GPUs at each instant later than `after`, up to `until`.

    Samples from before `since` do not count. Nor does an instant with a refused sample: the other
    samples are not the whole load.
    """
    if len(pod.gpus) == 1 and not pod.gpus[0].refused:  # as most pods have: a fifth faster
        (gpu,) = pod.gpus
        begin = max(bisect_right(gpu.times, after), bisect_left(gpu.times, since))
        counts = slice(begin, bisect_right(gpu.times, until))
        samples = zip(gpu.times[counts], gpu.values[counts], strict=True)
        return {time: [value] for time, value in samples}
    refused = {time for gpu in pod.gpus for time in gpu.refused}
    values_by_time: dict[float, list[float]] = defaultdict(list)
    for gpu in pod.gpus:
        for time, value in zip(gpu.times, gpu.values, strict=True):
            if after < time <= until and time >= since and time not in refused:
                values_by_time[time].append(value)
    return values_by_time


def mean(values: Collection[float]) -> float:
    return sum(values) / len(values)


_AGGREGATE: Mapping[GpuAggregation, Callable[[list[float]], float]] = {
    GpuAggregation.AVERAGE: mean,
    GpuAggregation.MAX: max,
    GpuAggregation.SUM: sum,
}


def loads(spec: TriggerSpec, samples: Mapping[float, list[float]]) -> Loads:
    """Return a pod's load at each instant: its GPUs aggregated."""
    aggregate = _AGGREGATE[spec.gpu_aggregation]
    return {
        time: aggregate(values) if len(values) > 1 else values[0]
        for time, values in samples.items()
    }


def as_one(pods: Sequence[Loads]) -> tuple[Loads, Collection[float]]:
    """Return the mean of a replica's pods at each instant, and the instants that show all."""
    if len(pods) == 1:
        return pods[0], pods[0].keys()
    times = set[float]().union(*pods)
    work = {time: sum(pod.get(time, 0.0) for pod in pods) / len(pods) for time in times}
    return work, {time for time in times if all(time in pod for pod in pods)}


def mean_load(spec: TriggerSpec, reported: Reported, until: float) -> float | None:
    """Return a pod's load: the mean over its samples that count in the window that ends at `until`.

    None: no sample counts.
    """
    samples = within(reported.pod, reported.since, until - reported.window_seconds, until)
    return mean(loads(spec, samples).values()) if samples else None


def half_loads(spec: TriggerSpec, pod: Pod) -> dict[int, float]:
    """Return a pod's load in each half window with samples, by its number, the newest one's 0."""
    half, halves = COVERED * window_seconds(spec, pod), defaultdict[int, list[float]](list)
    reach = pod.last_seen - spec.reach_seconds
    samples = within(pod, since_when(spec, pod), reach, pod.last_seen)
    for time, load in loads(spec, samples).items():
        halves[int((pod.last_seen - time) // half)].append(load)
    return {number: mean(load_of_half) for number, load_of_half in halves.items()}


def has_limit(signal: Signal) -> bool:
    """Tell whether the signal is work of at most 100; memory is used even without work."""
    return signal.is_percentage and signal is not Signal.MEMORY


def added_gpus(spec: TriggerSpec, expected: Iterable[Reported]) -> int:
    """Return how many GPUs are added up in the load of a pod, at most."""
    if spec.gpu_aggregation is not GpuAggregation.SUM:
        return 1
    return max((len(reported.pod.gpus) for reported in expected), default=1)


def full_load(spec: TriggerSpec, expected: Iterable[Reported]) -> float:
    """Return the load from which on a replica is full; infinite where the signal has no limit."""
    return FULL * added_gpus(spec, expected) if has_limit(spec.signal) else math.inf


def in_use_unnamed(spec: TriggerSpec, pod: Pod, at: float) -> bool:
    """Tell whether a pod was in use within the window, and its exporter may have lost its map.

    Exporters do not show the pod any more. The window ends at `at`, the snapshot's instant.
    """
    since = at - spec.activation_window_seconds
    was_busy = any(
        value > spec.activation_threshold
        for gpu in pod.gpus
        for value in gpu.values[bisect_right(gpu.times, since) :]
    )
    return pod.is_unnamed and (pod.busy_unnamed_at > since or was_busy)


def is_freed(spec: TriggerSpec, pod: Pod, at: float) -> bool:
    """Tell whether exporters show that a pod is gone, later than the cluster's list showed it.

    It was idle before: while the next list is waited for, it is no reason to be active again.
    """
    return pod.shown_at < pod.ended_at < math.inf and not in_use_unnamed(spec, pod, at)
