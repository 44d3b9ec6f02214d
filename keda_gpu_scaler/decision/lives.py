"""The sum over a workload's replicas, from their lives, and over their newest samples.

Pure. A *life* says from when a replica may work, from when on the others show its work, and what it
shows. It is seen at an instant if it shows its load then, or has none. An instant is whole if all
lives are seen in it: the sum there is what the workload does, and elsewhere what it does at least.
One that is not Ready yet, one whose samples do not count yet and one that drains are not seen.

The life of a replica that left, for example:

    100 s  it becomes Ready, and `begins`: an instant without its load is not `whole` from now on
    300 s  the cluster lists it alive for the last time, `until` when its samples count
    315 s  its end is listed; samples of the others can be 45 s old
    360 s  it is `over`: the others show its work, so instants are `whole` without it again

It `is_told` if it has samples between 100 s and 300 s.

A mean lags behind a load that rises, so the newest samples may raise the number of replicas. They
never lower it: a single sample of a load in bursts is no mean.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import NamedTuple

from keda_gpu_scaler.decision.pod_state import (
    COVERED,
    FULL,
    NEVER,
    NOT_READY,
    REPORTING,
    Loads,
    PodState,
    Replica,
    Reported,
    as_one,
    delay_seconds,
    has_limit,
    loads,
    mean,
    mean_load,
    replica_of,
    since_when,
    within,
)
from keda_gpu_scaler.snapshot.evidence import Readiness
from keda_gpu_scaler.snapshot.observation import grace_seconds
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.times import UNKNOWN_SCRAPE_SECONDS, UNTOLD_SECONDS


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums over a workload's replicas."""

    summed: float = 0.0
    """The sum over the replicas that report, as a mean over time."""
    before: float = 0.0
    """The same with those that have ended since, if that was recently."""
    is_untold: bool = False
    """One has ended recently, and it is not known until when it worked, or what it did."""
    is_brief: bool = False
    """Those that report have been shown together for less than half a window."""
    newest: float = 0.0
    """The sum over the newest samples; 0: no recent instant shows all that report."""
    are_full: bool = False
    """Each of those that report has been full for the grace, or since its samples count."""


class _Life(NamedTuple):
    """One replica: when it works, and what it shows."""

    begins: float
    """From here on it may work."""
    over: float
    """From here on the others show its work; infinite: it is there."""
    work: Loads
    """Its load at each instant that shows it, or a part of it."""
    whole: Collection[float]
    """The instants that show all of it."""
    is_told: bool = True
    """It is known until when it worked, and what it did."""


class _Timeline(NamedTuple):
    """What some lives do together."""

    work: Mapping[float, float]
    """What they show at each instant."""
    whole: Collection[float]
    """The instants at which all of them are seen."""
    window_seconds: float

    def mean(self, times: Collection[float]) -> float:
        """Return the mean over the window that ends with the newest of some instants."""
        began = max(times, default=0.0) - self.window_seconds
        return mean([self.work[time] for time in times if time > began] or [0.0])


def sums(spec: TriggerSpec, pods: Iterable[Pod], replicas: Sequence[Replica]) -> Sums:
    """Return the sums over the replicas that report.

    `pods` are all of the workload, and `replicas` those that should report, now or once they are
    Ready.
    """
    waiting = [replica for replica in replicas if replica.state in NOT_READY]
    reporting = [replica.pods for replica in replicas if replica.state in REPORTING]
    if not reporting:
        return Sums()
    are_steady = all(_is_steady(pod) for group in reporting for pod in group)
    steady = _of_one_window(spec, reporting) if are_steady else 0.0
    left = [*_left(spec, pods, replicas)]
    if are_steady and not left and not waiting:
        return Sums(steady)
    found = _over_time(spec, reporting, [*map(_not_ready, waiting)], left)
    return replace(
        found, summed=max(found.summed, steady), is_brief=found.is_brief and not are_steady
    )


def _over_time(
    spec: TriggerSpec,
    reporting: Sequence[Sequence[Reported]],
    waiting: Sequence[_Life],
    left: Sequence[_Life],
) -> Sums:
    """Return the sums as means over the whole instants of one window.

    It ends with the newest of them, which may be from before a replica came or went.
    """
    shown = [*chain(*reporting)]
    window = max(reported.window_seconds for reported in shown)
    last = max(reported.pod.last_seen for reported in shown)
    here = [_life(spec, group, last - spec.reach_seconds) for group in reporting]
    times = {time for life in here for time in life.work}
    seen = _timeline([*here, *waiting], times, window)
    began = max(life.begins for life in here)
    recent = {time for time in times if time > last - window}
    together = {time for time in recent.intersection(seen.whole) if time >= began}
    interval = max(reported.pod.scrape_interval_seconds for reported in shown)
    # A source may look at samples less often than they are scraped.
    steps = (after - time for time, after in pairwise(sorted(times)))
    interval = max(interval or UNKNOWN_SCRAPE_SECONDS, min(steps, default=0))
    is_brief = not together or last - min(together) + interval < COVERED * window
    # Each of these is a part of the work: before a replica came, the others may have been full.
    spans = [seen.whole, recent] if is_brief else [seen.whole, recent, together]
    with_left = _timeline([*here, *left], seen.whole, window)
    return Sums(
        max(map(seen.mean, spans)),
        *_before(with_left, [life for life in left if life.over > last - window], began),
        is_brief,
    )


def _before(timeline: _Timeline, left: Collection[_Life], began: float) -> tuple[float, bool]:
    """Return the sum with the replicas that left lately, and whether it is not known.

    `began` is when the last of the others began.
    """
    is_untold = not all(life.is_told for life in left) or (
        not timeline.whole and any(life.begins < life.over for life in left)
    )
    if not any(life.work for life in left):
        return 0.0, is_untold
    together = [time for time in timeline.whole if time >= began]
    return max(timeline.mean(timeline.whole), timeline.mean(together)), is_untold


def _timeline(lives: Iterable[_Life], times: Collection[float], window: float) -> _Timeline:
    work, unseen = dict.fromkeys(times, 0.0), set[float]()
    for life in lives:
        for time in work:
            load = life.work.get(time)
            if load is not None:
                work[time] += load
            if life.begins <= time < life.over and time not in life.whole:
                unseen.add(time)
    return _Timeline(work, work.keys() - unseen, window)


def _life(spec: TriggerSpec, group: Sequence[Reported], since: float) -> _Life:
    """Return the life of a replica that reports, as far as its samples reach back to `since`."""
    shown = [
        loads(spec, within(pod.pod, max(since, pod.since), NEVER, pod.pod.last_seen))
        for pod in group
    ]
    return _Life(min(_span(pod.pod)[0] for pod in group), math.inf, *as_one(shown))


def _not_ready(replica: Replica) -> _Life:
    """Return the life of a replica that may be Ready since the cluster listed it last."""
    listed = [reported.pod.status.listed_at for reported in replica.pods if reported.pod.status]
    return _Life(math.nextafter(min(listed, default=math.inf), math.inf), math.inf, {}, ())


def _left(spec: TriggerSpec, pods: Iterable[Pod], replicas: Sequence[Replica]) -> Iterator[_Life]:
    """Yield the lives of the replicas that have ended as a whole.

    Where the cluster lists the others, it has to have listed one that left as well: a process that
    has just started knows of no pod that ended before.
    """
    reporting = [replica for replica in replicas if replica.state in REPORTING]
    are_listed = any(pod.pod.status for replica in reporting for pod in replica.pods)
    ended: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.ended and (pod.gpus or (pod.status is not None and pod.status.may_work_unseen)):
            ended[replica_of(spec, pod)].append(pod)
    for replica in replicas:
        ended.pop(replica.name, None)
    yield from (_life_of_left(spec, group, are_listed=are_listed) for group in ended.values())


def _life_of_left(spec: TriggerSpec, group: Sequence[Pod], *, are_listed: bool) -> _Life:
    begins, until, over = zip(*map(_span, group), strict=True)
    shown = [
        loads(spec, within(pod, since_when(spec, pod), NEVER, min(until)))
        for pod in group
        if pod.readiness is not Readiness.NEVER
    ]
    life = _Life(min(begins), max(over), *as_one([*filter(None, shown)]))
    is_told = all(shown) if life.work else life.begins >= life.over
    if are_listed:
        is_told = is_told and min(until) > NEVER and all(pod.status for pod in group)
    return life._replace(is_told=is_told)


def _span(pod: Pod) -> tuple[float, float, float]:
    """Return three instants of a pod.

    Before the first it did no work, up to the second its samples are about its work, and from the
    third on all samples of the others are about its work as well, if it has ended.
    """
    status, begins = pod.status, pod.first_seen
    until, over = pod.last_seen - UNTOLD_SECONDS, pod.last_seen
    if status is not None:
        begins, until = status.ready_since, status.alive_at
        over = until + UNTOLD_SECONDS if status.ended_at == math.inf else status.ended_at
    if pod.readiness is Readiness.NEVER:
        begins = math.inf
    return begins, until, over + delay_seconds(pod)


def _is_steady(reported: Reported) -> bool:
    """Tell whether a pod is measured by all samples of its window, as most are."""
    began = reported.pod.last_seen - reported.window_seconds
    if reported.state is not PodState.MEASURED or reported.since > began:
        return False
    half = began + (1 - COVERED) * reported.window_seconds
    # One that takes turns on a GPU is there without a number in between.
    return all(
        any(began < time <= half for time in chain(gpu.times, gpu.refused)) or gpu.last <= began
        for gpu in reported.pod.gpus
    )


def _of_one_window(spec: TriggerSpec, replicas: Collection[Sequence[Reported]]) -> float:
    """Return the sum over steady replicas, each as its mean over the same window.

    It ends when each was still seen. One that just went has no newer samples, and in those of the
    others they do its work. Without a sample in it, a pod has its newest load.
    """
    until = min(reported.pod.last_seen for group in replicas for reported in group)

    def load(reported: Reported) -> float:
        pod, found = reported.pod, None
        if pod.last_seen > until:
            found = mean_load(spec, reported, until)
        return reported.load if found is None else found

    return sum(mean([*map(load, group)]) for group in replicas)


def newest(
    spec: TriggerSpec, replicas: Sequence[Sequence[Reported]], at: float, *, is_lone: bool
) -> tuple[float, bool]:
    """Return the sum over the newest samples, and whether each replica is full.

    The sum is 0 where no recent instant shows all of them. A replica is full that has been for the
    grace of its exporter, or since its samples count.

    Of several replicas one may just have left, and works for a while beside those that replace it.
    So their sum is that of the newest instant after which each of them is known to have stayed.
    `replicas` are the pods of each that reports; `is_lone`: no other should report.
    """
    if not replicas or not spec.signal.follows_work:
        return 0.0, False
    recent = [_recent(spec, pods, at) for pods in replicas]
    are_full = has_limit(spec.signal) and all(full for _, full in recent)
    counted = [shown for shown, _ in recent if shown]
    together = set.intersection(*map(set, counted)) if counted else set[float]()
    by_time = {time: sum(shown[time] for shown in counted) for time in together}
    until = last = max(by_time, default=NEVER)
    if not is_lone:
        # Exporters alone show a pod until it is gone, so a drain of half a minute has to be over.
        until = min(
            last - delay_seconds(pod.pod) if pod.pod.status is None else pod.pod.status.alive_at
            for pods in replicas
            for pod in pods
        )
    stayed = max((time for time in by_time if time <= until), default=None)
    return 0.0 if stayed is None else by_time[stayed], are_full


def _recent(spec: TriggerSpec, pods: Sequence[Reported], at: float) -> tuple[Loads, bool]:
    """Return a replica's loads that are added up, and whether all of its GPUs are full.

    They are those of instants that show each GPU, as far back as a replica that is still believed
    to report may have been silent: a minute, or two scrapes if that is longer. Where it is not
    known when a pod became Ready, a model may still load when `warmup` is over; so its first half
    window is not added up. It can be full, if all others are.
    """
    pod_loads, are_full = list[Loads](), True
    for reported in pods:
        pod, since = reported.pod, reported.since
        began = pod.last_seen - reported.window_seconds
        gpus = sum(gpu.times[-1:] > (began,) for gpu in pod.gpus)
        after = at - grace_seconds(pod.scrape_interval_seconds)
        samples = within(pod, reported.since, after, pod.last_seen)
        whole = {time: values for time, values in samples.items() if len(values) == gpus}
        are_full = are_full and bool(whole) and min(map(min, whole.values())) >= FULL
        if pod.readiness is Readiness.UNKNOWN:
            since = max(since, pod.sampled_since) + COVERED * reported.window_seconds
        pod_loads.append({time: load for time, load in loads(spec, whole).items() if time >= since})
    work, shown = as_one(pod_loads)
    return {time: work[time] for time in shown}, are_full
