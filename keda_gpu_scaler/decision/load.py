"""The load of a workload: which of its replicas are measured, their sum, and the number of it.

Pure. A pod's load is its GPUs aggregated at each instant, then the mean over the window of the
samples that count. The sum of these loads is the workload's, unless replicas came or went within
the window or the newest samples are more (`decision.lives`).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from keda_gpu_scaler.decision import lives
from keda_gpu_scaler.decision.lives import Sums
from keda_gpu_scaler.decision.pod_state import (
    NEVER,
    NOT_READY,
    NOT_SEEN,
    REPORTING,
    PodState,
    Replica,
    Reported,
    added_gpus,
    expected_pods,
    full_load,
    half_loads,
    in_use_unnamed,
    listed,
    mean,
    replica_of,
    replicas_of,
)
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot, Pod
from keda_gpu_scaler.spec.spec import Aggregation, TriggerSpec
from keda_gpu_scaler.spec.workload import PodSelector, Selected

DECIMALS = 6
"""Servers differ in the 15th digit of the same mean; so thresholds are compared after rounding."""
TOLERANCE = 0.1
"""The HPA's default tolerance: it changes nothing while a value is this near to its target.

An HPA can have others, which are not known here. Above this one a lower bound is an answer, below
it a hold: whatever tolerance the HPA has, neither of them removes a replica.
"""
FULL_LOAD, FULL_GROWTH = 1.2, 1.7
"""Full replicas may have more work than they show. They ask for this multiple of what they show,
and for this multiple of their threshold. Both come from the score on public traces: with less, a
climb from one replica takes too many start-ups; with more, replicas that have just enough work ask
for twice as many."""


@dataclass(frozen=True, slots=True)
class MeasuredWorkload:
    """The replicas that should report, and their known loads."""

    spec: TriggerSpec
    view: NamespaceSnapshot
    pods: Sequence[Pod]
    """All pods that it was made of, ended ones included."""
    reported: Sequence[Reported]
    """Those that should report."""
    reporting_pods: int
    """How many of them do."""
    replicas: Sequence[Replica]
    """Those that should report, in the order of their names."""
    not_ready: Sequence[Replica]
    """Those that were never Ready."""
    ignored: tuple[str, ...]
    """Ready pods that ask for no GPU, and show none while others of the workload do."""
    measured: Sequence[float]
    """The known loads."""
    sums: Sums
    wanted: int | None = None
    """The replicas that the owner asks for; None: not known."""
    pending: int = 0
    """Replicas that the owner asks for, and that do not count yet."""
    is_only_asked_about: bool = False
    """The HPA says that it has replicas, and no exporter shows one."""

    def of(self, *states: PodState) -> list[Replica]:
        every = (*self.replicas, *self.not_ready)
        return [replica for replica in every if replica.state in states]

    def names(self, *states: PodState) -> tuple[str, ...]:
        return tuple(replica.name for replica in self.of(*states))

    @property
    def mean(self) -> float:
        """The mean over the measured replicas; 0 without one."""
        return round(mean(self.measured), DECIMALS) if self.measured else 0.0

    @property
    def ended_pods(self) -> int:
        return sum(pod.ended for pod in self.pods)

    @property
    def blank(self) -> tuple[str, ...]:
        """GPUs of pods that report, which show no number that can be believed."""
        return tuple(
            f"{gpu.gpu} of {reported.pod.name}"
            for reported in self.reported
            if reported.state in NOT_SEEN
            for gpu in reported.pod.gpus
            if gpu.refused[-1:] == (reported.pod.last_seen,)
        )

    @property
    def lacks_past(self) -> bool:
        """Whether its source lacks samples of a part of the window in which a pod may have run."""
        return any(
            reported.state is PodState.WARMING and reported.lacks_past for reported in self.reported
        )

    @property
    def last_listed(self) -> float:
        """When the cluster listed one of its pods for the last time, ended or not."""
        return _last_listed(self.pods)

    @property
    def ending_since(self) -> float:
        """Since when the cluster has shown that its last pod ends."""
        ends = [pod.status.ended_at for pod in self.pods if pod.status]
        return max((end for end in ends if end < math.inf), default=NEVER)

    @property
    def is_listed(self) -> bool:
        """Whether the cluster's newest list has a pod that has not ended and may have a GPU."""
        evidence, alive = self.view.evidence, [pod for pod in self.pods if not pod.ended]
        return evidence is not None and _last_listed(listed(alive)) >= evidence.scraped_at

    @property
    def total(self) -> float:
        """The sum over the replicas that were there, or over their newest samples if it is more."""
        return round(max(self.sums.summed, self.sums.before, self.sums.newest), DECIMALS)

    @property
    def counted(self) -> int:
        """The measured replicas, without those beyond what the owner asks for.

        In a rolling update there are more for a while, which share the work and are to go.
        """
        measured = len(self.measured)
        return measured if self.wanted is None else min(measured, self.wanted)

    @property
    def full(self) -> float:
        """The load from which on a replica is full."""
        return full_load(self.spec, self.reported)

    def peak(self) -> float:
        """Return the largest mean over the measured replicas in any half window.

        It takes as long as all the rest of a decision, and matters only where replicas are waited
        for.
        """
        means = _means(
            _means(half_loads(self.spec, reported.pod) for reported in replica.pods)
            for replica in self.of(PodState.MEASURED)
        )
        return round(max(means.values(), default=0.0), DECIMALS)

    @property
    def outstanding(self) -> float:
        """The load that `max` or `p95` takes for that of each replica, and 0 for an unknown one."""
        return outstanding(self.spec.aggregation, [replica.load for replica in self.replicas])

    @property
    def asked(self) -> float:
        """The sum, or what `max` or `p95` makes of it, which is never less."""
        return max(self.total, round(self.counted * self.outstanding, DECIMALS))


_P95 = 0.95


def outstanding(aggregation: Aggregation, known: Sequence[float]) -> float:
    """Return the largest load, or the one that 95 % do not exceed; 0 for other aggregations.

    Between two loads it is interpolated as PromQL's `quantile` does: of fewer than 20 replicas, it
    lies between the two largest.
    """
    if not known or aggregation not in {Aggregation.MAX, Aggregation.P95}:
        return 0.0
    ordered = sorted(known)
    if aggregation is Aggregation.MAX:
        return ordered[-1]
    rank = _P95 * (len(ordered) - 1)
    lower = math.floor(rank)
    below, above = ordered[lower], ordered[min(lower + 1, len(ordered) - 1)]
    return below + (above - below) * (rank - lower)


def are_pods_known(spec: TriggerSpec, view: NamespaceSnapshot) -> bool:
    """Tell whether it is known which pods are the workload's.

    The pods of a label selector are known only while the cluster says which it selects. Otherwise
    the known pods may be only a part, and no known pod does not mean that there is none.
    """
    if not isinstance(spec.pods, Selected):
        return True
    evidence = view.evidence
    return evidence is not None and spec.pods.selected_by in evidence.selected


def pods_of(spec: TriggerSpec, view: NamespaceSnapshot) -> list[Pod]:
    """Return exactly the workload's pods, ended ones included.

    They are found by their owners where these are known. If an owner says that it has no replicas,
    its pods that have not been shown since have ended. The Kubernetes API says so for each pod
    (`PodStatuses.proves_gone`).
    """
    selector, evidence, ours = spec.pods, view.evidence, list[Pod]()
    for pod in view.starting_with(selector.prefix):
        if spec.only_shown and not pod.was_seen:
            continue
        owned = _owns(selector, pod, view)
        if selector.matches(pod.name) if owned is None else owned:
            is_back = evidence is None and pod.ended and in_use_unnamed(spec, pod, view.at)
            ours.append(replace(pod, ended=False) if is_back else pod)
    if any(pod.status and pod.status.asks_gpu and not pod.ended for pod in ours):
        ours = [_without_unknown_device(pod) for pod in ours]
    if evidence is None or selector.owner not in evidence.without_pods:
        return ours
    return [
        pod if pod.shown_at >= evidence.scraped_at else replace(pod, ended=True) for pod in ours
    ]


def _without_unknown_device(pod: Pod) -> Pod:
    """Return a pod of which another one of the workload asks for a GPU: its device is none."""
    if pod.status is None or pod.status.asks_gpu is not None or not pod.status.devices:
        return pod
    return replace(pod, status=replace(pod.status, asks_gpu=False))


def _owns(selector: PodSelector, pod: Pod, view: NamespaceSnapshot) -> bool | None:
    """Tell whether a pod is the selector's by its owners; None: only its name can tell."""
    if pod.status is None:
        return None
    leader = selector.leader_of(pod.status.owners)
    if leader is None:
        return selector.owns(pod.status.owners)
    known = view.pods.get(leader)
    if known is None and pod.ended:  # a leader that no exporter shows is gone before its workers
        return None
    return known is not None and (known.status is None or selector.owner in known.status.owners)


def workload(
    spec: TriggerSpec, pods: Sequence[Pod], view: NamespaceSnapshot, now: float
) -> MeasuredWorkload:
    """Return the workload's replicas with their loads, and what is known of those to come.

    The age of samples is measured up to `now`, and all else up to the snapshot's instant.
    """
    expected, ignored = expected_pods(spec, pods, view.at, now)
    every = replicas_of(spec, expected)
    owner = spec.pods.owner
    measured = MeasuredWorkload(
        spec,
        view,
        pods,
        expected,
        sum(reported.state in REPORTING for reported in expected),
        [replica for replica in every if replica.state not in NOT_READY],
        [replica for replica in every if replica.state in NOT_READY],
        ignored,
        [replica.load for replica in every if replica.state is PodState.MEASURED],
        lives.sums(spec, pods, every),
        None if view.evidence is None or owner is None else view.evidence.wanted.get(owner),
    )
    without_gpu = {replica_of(spec, view.pods[name]) for name in ignored}
    without_gpu -= {replica.name for replica in every}
    measured = replace(measured, pending=_pending(measured, len(without_gpu)))
    return replace(measured, sums=_raised(measured))


def _pending(measured: MeasuredWorkload, without_gpu: int) -> int:
    """Return how many replicas the owner asks for that do not count yet."""
    if measured.wanted is None:
        return 0
    # One that was not Ready within startTimeout is given up, unless those that are measured are
    # full: then it would be asked for again.
    late = len(measured.of(PodState.STALLED))
    if late and measured.peak() >= measured.full:
        late = 0
    return max(0, measured.wanted - len(measured.replicas) - without_gpu - late)


def _raised(measured: MeasuredWorkload) -> Sums:
    """Return the sums with what the newest samples ask for, and what was done before is limited."""
    spec, sums, expected = measured.spec, measured.sums, len(measured.replicas)
    # What was done before replicas left is a reason not to lower, and none to raise: it puts those
    # that are asked for on target, and no more.
    before = min(sums.before, (expected + measured.pending) * spec.threshold)
    reporting = [replica.pods for replica in measured.of(*REPORTING)]
    newest_sum, are_full = lives.newest(spec, reporting, measured.view.at, is_lone=expected == 1)
    # Full replicas ask for more than they show, unless others are to come, or they can hardly be
    # above their target.
    are_full = (
        are_full
        and len(reporting) == expected
        and not (measured.pending or measured.of(PodState.STARTING))
        and (1 + TOLERANCE) * spec.threshold <= 100 * added_gpus(spec, measured.reported)
    )
    if are_full:
        shown = FULL_LOAD * max(sums.summed, newest_sum)
        newest_sum = round(max(shown, FULL_GROWTH * expected * spec.threshold), DECIMALS)
    return replace(sums, before=round(before, DECIMALS), newest=newest_sum, are_full=are_full)


def _means(parts: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """Return the mean of each half window over the parts that know it."""
    known = defaultdict[int, list[float]](list)
    for part in parts:
        for number, load in part.items():
            known[number].append(load)
    return {number: mean(half_loads) for number, half_loads in known.items()}


def _last_listed(pods: Sequence[Pod]) -> float:
    return max((pod.status.listed_at for pod in pods if pod.status), default=NEVER)


def value(measured: MeasuredWorkload) -> float | None:
    """Return the number that GetMetrics returns, or None to hold.

    What is seen of a workload is a lower bound: replicas can do no more than they do, and what is
    not seen is not added up. A lower bound may raise the number of replicas; it may never lower it.
    The sum may lower if it is exact (`_added`) and no other replica is awaited (`_awaited`).

    `max` and `p95` take the load of the replica that has the most, or nearly so, for that of each.
    They hold where the sum holds and can only raise it, so they never ask for fewer replicas.
    """
    spec, expected, awaited = measured.spec, len(measured.replicas), _awaited(measured)
    added, is_exact = _added(measured)
    least, on_target = measured.total + added, (expected + awaited) * spec.threshold
    may_lower, raises = is_exact and not awaited, least > (1 + TOLERANCE) * on_target
    if may_lower or raises:
        if spec.aggregation.is_for_all:
            return measured.asked + added
        # The HPA multiplies it by the Ready replicas, and one that is missing may be none.
        ready = expected - len(measured.of(PodState.MISSING))
        is_lower = ready < expected and least * ready <= expected**2 * spec.threshold
        return None if is_lower else least / expected
    kept = min(_kept(measured), on_target)
    if kept <= max(0.0, on_target - spec.threshold):
        return None
    return kept if spec.aggregation.is_for_all else kept / expected


def _awaited(measured: MeasuredWorkload) -> int:
    """Return the replicas that are waited for: those there are have enough to do for more."""
    shown, threshold = max(measured.sums.summed, measured.sums.newest), measured.spec.threshold
    if not measured.pending or shown > len(measured.replicas) * threshold:
        return measured.pending
    peak = measured.peak()
    return measured.pending if peak > threshold or peak >= measured.full else 0


def _added(measured: MeasuredWorkload) -> tuple[float, bool]:
    """Return what replicas do that work unseen, and whether the sum with it is exact.

    It is not while a replica is warming, missing or silent, while most have never reported, or
    while the sums are untold or brief.

    One that never reported is on its target, and above it if the others are: it can raise, and is
    no reason to lower. One that reported before does what the others do, if these are full, and
    unless there is a pod in its place.
    """
    known, unseen = len(measured.measured), len(measured.of(PodState.UNSEEN))
    # All are measured except some that never reported, and these are no majority.
    if unseen <= known == len(measured.replicas) - unseen:
        is_exact = known > 0 and not (measured.sums.is_untold or measured.sums.is_brief)
        return unseen * max(measured.mean, measured.spec.threshold), is_exact
    if min(measured.measured, default=0.0) < measured.full:
        return 0.0, False
    silent = len(measured.of(PodState.SILENT))
    if measured.wanted is not None:
        silent = min(silent, max(0, measured.wanted - known - len(measured.not_ready)))
    return silent * measured.mean, False


def _kept(measured: MeasuredWorkload) -> float:
    """Return what the others did while the rest are warming: a reason to keep them, none to raise.

    During a hold the HPA forgets for which load it started those.
    """
    warming = len(measured.of(PodState.WARMING))
    are_others_measured = 0 < warming == len(measured.replicas) - len(measured.measured)
    if not measured.measured or not are_others_measured or measured.lacks_past:
        return 0.0
    return max(measured.sums.summed, measured.sums.before)
