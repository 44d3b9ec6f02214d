"""The load of a workload: which of its replicas are measured, and what they add up to.

Pure. A pod's load is its GPUs aggregated at each instant, then the mean over the window of the
samples that count. All loads are taken over a common time: once a new pod shares the work, samples
from before would count the same work twice.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest

from keda_gpu_scaler.decision import activity, departed
from keda_gpu_scaler.decision.pod_state import (
    COVERED,
    NEVER,
    NO_GPU_SECONDS,
    NOT_READY,
    NOT_SEEN,
    REPORTING,
    PodState,
    are_shown_for_long,
    lacks_past,
    loads,
    mean,
    mean_load,
    pod_states,
    ready_since,
    since_when,
    window_seconds,
    within,
)
from keda_gpu_scaler.snapshot.evidence import Readiness
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot, Pod
from keda_gpu_scaler.spec.spec import Aggregation, TriggerSpec

DECIMALS = 6
"""Servers differ in the 15th digit of the same mean; so thresholds are compared after rounding."""
TOLERANCE = 0.1
"""The HPA's default tolerance: it changes nothing while a value is this near to its target.

An HPA can have others, which are not known here. Above this one a lower bound is an answer, below
it a hold: whatever tolerance the HPA has, neither of them removes a replica.
"""


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica: a pod, or the pods of one LeaderWorkerSet group."""

    name: str
    reporting: PodState
    load: float
    """0 while it is not known."""
    pods: tuple[Pod, ...] = ()
    """Its pods, if it is measured."""


@dataclass(frozen=True)
class Workload:
    """The replicas that should report, and their known loads.

    Without slots: what is asked of it several times in one decision is computed once.
    """

    replicas: tuple[Replica, ...]
    reporting_pods: int
    ended_pods: int
    before: float = 0.0
    """The sum as it was while replicas were there that have ended since, if that was recently."""
    is_untold: bool = False
    """One has ended recently, and it is not known until when it worked."""
    starting: tuple[str, ...] = ()
    """Replicas that were never Ready, and are young enough to become so."""
    stalled: tuple[str, ...] = ()
    """Replicas that were never Ready within startTimeout."""
    ignored: tuple[str, ...] = ()
    """Ready pods that ask for no GPU, and show none while others of the workload do."""
    never_named: frozenset[str] = frozenset()
    """Replicas that do not report, with a pod that no exporter has ever named."""
    unnamed: frozenset[str] = frozenset()
    """Replicas that do not report, with GPUs that are shown without a pod now."""
    blank: tuple[str, ...] = ()
    """GPUs of pods that report, which show no number that can be believed."""
    lacks_past: bool = False
    """The source has no samples of a part of the window in which one of its pods may have run."""
    ready_known: bool = False
    """For some of its pods it is known whether they are Ready."""
    wanted: int | None = None
    """The replicas that the owner asks for; None: not known."""
    pending: int = 0
    """Replicas that the owner asks for, and that do not count yet."""
    last_listed: float = NEVER
    """When the cluster listed one of its pods for the last time, ended or not."""
    last_alive: float = NEVER
    """The same for pods that have not ended and may have a GPU."""
    is_unseen: bool = False
    """The HPA says that it has replicas, and no exporter shows one."""

    def of(self, *reporting: PodState) -> list[Replica]:
        """Return the replicas in one of these conditions."""
        return [replica for replica in self.replicas if replica.reporting in reporting]

    @cached_property
    def measured(self) -> list[Replica]:
        """The replicas with a known load."""
        return self.of(PodState.MEASURED)

    @cached_property
    def total(self) -> float:
        """The sum over the replicas that were there, measured ones and those that just left."""
        measured = sum(replica.load for replica in self.measured)
        return round(max(measured, self.before), DECIMALS)

    @cached_property
    def mean(self) -> float:
        """The mean over the measured replicas; 0 without one."""
        loads = [replica.load for replica in self.measured]
        return round(mean(loads), DECIMALS) if loads else 0.0

    @property
    def counted(self) -> int:
        """The measured replicas, without those beyond what the owner asks for.

        In a rolling update there are more for a while, which share the work and are to go.
        """
        measured = len(self.measured)
        return measured if self.wanted is None else min(measured, self.wanted)

    def outstanding(self, aggregation: Aggregation) -> float:
        """Return the load that `max` or `p95` takes for that of each replica; else 0.

        An unknown load is taken for 0, so that the result is a lower bound.
        """
        return outstanding(aggregation, [one.load for one in self.replicas])

    def total_by(self, aggregation: Aggregation) -> float:
        """Return the sum, or what `max` or `p95` makes of it, which is never less."""
        if aggregation not in _OUTSTANDING:
            return self.total
        raised = round(self.counted * self.outstanding(aggregation), DECIMALS)
        return max(self.total, raised)


_OUTSTANDING = (Aggregation.MAX, Aggregation.P95)
_P95 = 0.95


def outstanding(aggregation: Aggregation, known: Sequence[float]) -> float:
    """Return the largest load, or the one that 95 % do not exceed; 0 for other aggregations.

    Between two loads it is interpolated as PromQL's `quantile` does: of fewer than 20 replicas, it
    lies between the two largest.
    """
    if not known or aggregation not in _OUTSTANDING:
        return 0.0
    ordered = sorted(known)
    if aggregation is Aggregation.MAX:
        return ordered[-1]
    rank = _P95 * (len(ordered) - 1)
    lower = math.floor(rank)
    below, above = ordered[lower], ordered[min(lower + 1, len(ordered) - 1)]
    return below + (above - below) * (rank - lower)


def pods_of(spec: TriggerSpec, view: NamespaceSnapshot) -> list[Pod]:
    """Return exactly the workload's pods, ended ones included.

    They are found by their owners where these are known. If an owner says that it has no replicas,
    its pods that have not been shown since have ended. The Kubernetes API says so for each pod
    (`PodStatuses.proves_gone`).
    """
    candidates = view.starting_with(spec.pods.prefix)
    ours = [pod for pod in candidates if _is_ours(spec, pod)]
    said = view.evidence
    if said is None:
        return [
            replace(pod, ended=False)
            if pod.ended and activity.in_use_unnamed(spec, pod, view.at)
            else pod
            for pod in ours
        ]
    if spec.pods.owner not in said.without_pods:
        return ours
    return [pod if _shown_at(pod) >= said.scraped_at else replace(pod, ended=True) for pod in ours]


def workload(
    spec: TriggerSpec, pods: Sequence[Pod], at: float, now: float, give_up_seconds: float
) -> Workload:
    """Return the workload's replicas with their loads.

    Args:
        spec: the trigger.
        pods: the workload's pods, as `pods_of` finds them.
        at: the snapshot's instant, up to which silence is measured: a failed fetch adds none.
        now: the time of the answer, for the age of samples.
        give_up_seconds: how long a pod that disappeared with its exporter counts as missing while
            others report, unless the cluster says that it exists; it does not come back when the
            others end.
    """
    alive = [pod for pod in pods if not pod.ended]
    reported, ignored = reported_pods(spec, pods, at, now, give_up_seconds)
    groups = _groups(spec, reported)
    replicas = [_replica(name, group) for name, group in sorted(groups.items())]
    measured = [[one.pod for one in group] for group in groups.values() if _is_measured(group)]
    ended = _ended(spec, pods, groups)
    not_seen = [
        (name, one.pod)
        for name, group in groups.items()
        for one in group
        if one.reporting in NOT_SEEN
    ]
    return Workload(
        replicas=tuple(one for one in replicas if one.reporting not in NOT_READY),
        reporting_pods=sum(one.reporting in REPORTING for one in reported),
        ended_pods=sum(pod.ended for pod in pods),
        before=departed.sum_before(spec, measured, ended),
        is_untold=departed.is_untold(spec, measured, ended),
        starting=_named(replicas, PodState.STARTING),
        stalled=_named(replicas, PodState.STALLED),
        ignored=ignored,
        never_named=frozenset(name for name, pod in not_seen if not pod.was_seen),
        unnamed=frozenset(name for name, pod in not_seen if pod.is_unnamed),
        blank=tuple(
            f"{gpu.gpu} of {one.pod.name}"
            for one in reported
            if one.reporting in NOT_SEEN
            for gpu in one.pod.gpus
            if gpu.refused[-1:] == (one.pod.last_seen,)
        ),
        lacks_past=any(
            one.reporting is PodState.WARMING and lacks_past(spec, one.pod) for one in reported
        ),
        ready_known=any(pod.readiness is not Readiness.UNKNOWN for pod in _should_report(alive)),
        last_listed=_last_listed(pods),
        last_alive=_last_listed(_listed_with_gpu(alive)),
    )


def peak(spec: TriggerSpec, found: Workload) -> float:
    """Return the largest mean over the measured replicas in any half window.

    It takes as long as all the rest of a decision, and matters only where replicas are waited for.
    """
    replicas = [_mean_halves(spec, one.pods) for one in found.measured]
    means = map(_mean_known, zip_longest(*replicas))
    return round(max((one for one in means if one is not None), default=0.0), DECIMALS)


def _mean_halves(spec: TriggerSpec, pods: Sequence[Pod]) -> list[float | None]:
    """Return a replica's load in each half window, as far back as samples matter, newest first.

    None: no sample counts there.
    """
    return list(map(_mean_known, zip_longest(*(_halves(spec, pod) for pod in pods))))


def _mean_known(loads: Sequence[float | None]) -> float | None:
    known = [load for load in loads if load is not None]
    return mean(known) if known else None


def _halves(spec: TriggerSpec, pod: Pod) -> Iterator[float | None]:
    half = COVERED * window_seconds(spec, pod)
    since = max(since_when(spec, pod), pod.last_seen - spec.reach_seconds)
    for back in range(math.ceil(spec.reach_seconds / half)):
        until = pod.last_seen - back * half
        found = loads(spec, within(pod, since, until - half, until))
        yield mean(found.values()) if found else None


@dataclass(frozen=True, slots=True)
class Reported:
    """One pod with its state and load."""

    pod: Pod
    reporting: PodState
    load: float = 0.0

    def is_given_up(self, before: float) -> bool:
        """Tell whether nothing has shown it since `before`, and nothing says that it exists."""
        shown_at = _shown_at(self.pod) + self.pod.unsure_seconds
        return self.reporting is PodState.MISSING and shown_at < before


def reported_pods(
    spec: TriggerSpec, pods: Sequence[Pod], at: float, now: float, give_up_seconds: float
) -> tuple[list[Reported], tuple[str, ...]]:
    """Return the pods that should report, and the names of those that are Ready and have no GPU.

    Args:
        spec: the trigger.
        pods: the workload's pods, as `pods_of` finds them.
        at: the snapshot's instant.
        now: the time of the answer.
        give_up_seconds: as for `workload`.
    """
    should = _should_report([pod for pod in pods if not pod.ended])
    ignored = {pod.name for pod in should if _has_no_gpu(pod, should, at)}
    counting = [pod for pod in should if pod.name not in ignored]
    how = pod_states(spec, counting, at, now)
    reported = _with_loads(spec, list(map(Reported, counting, how)))
    newest = max((pod.last_seen for pod in pods), default=NEVER)
    kept = [one for one in reported if not one.is_given_up(newest - give_up_seconds)]
    return kept, tuple(sorted(ignored))


def _should_report(alive: Sequence[Pod]) -> list[Pod]:
    """Return the pods that exporters have shown, and listed ones of which readiness is known."""
    listed = _listed_with_gpu(alive)
    known = {pod.name for pod in listed if pod.readiness is not Readiness.UNKNOWN}
    return [pod for pod in alive if pod.was_seen or pod.name in known]


def _is_ours(spec: TriggerSpec, pod: Pod) -> bool:
    if spec.only_shown and not pod.was_seen:
        return False
    owned = None if pod.status is None else spec.pods.owns(pod.status.owners)
    return spec.pods.matches(pod.name) if owned is None else owned


def _shown_at(pod: Pod) -> float:
    """Return when an exporter or the cluster last showed a pod."""
    return pod.last_seen if pod.status is None else max(pod.last_seen, pod.status.listed_at)


def _last_listed(pods: Sequence[Pod]) -> float:
    return max((pod.status.listed_at for pod in pods if pod.status), default=NEVER)


def _listed_with_gpu(pods: Sequence[Pod]) -> list[Pod]:
    """Return the listed pods that ask for a GPU; all listed ones if none does."""
    asking = [pod for pod in pods if pod.status is not None and pod.status.asks_gpu]
    return asking or [pod for pod in pods if pod.status is not None]


def _has_no_gpu(pod: Pod, siblings: Sequence[Pod], at: float) -> bool:
    """Tell whether a pod asks for no GPU and showed none, Ready beside others for long enough."""
    if pod.was_seen or pod.status is None or pod.status.asks_gpu:
        return False
    lasting = pod.readiness is Readiness.EVER and ready_since(pod) <= at - NO_GPU_SECONDS
    return lasting and are_shown_for_long(siblings, at)


def _with_loads(spec: TriggerSpec, reported: list[Reported]) -> list[Reported]:
    """Return the pods; measured ones with their load over the time when all were Ready.

    By exporters alone, that time can be a single sample, and a few samples of a bursty load are
    often far too high or too low. Over each pod's own time, what one carried alone is added to what
    two share. Until the common time is half a window, both have to ask for the same replicas, or
    both for more than there are; otherwise the load of the youngest pods is not known yet.
    """
    measured = [one.pod for one in reported if one.reporting is PodState.MEASURED]
    ready = max((ready_since(pod) for pod in measured), default=NEVER)
    common = max((since_when(spec, pod) for pod in measured), default=NEVER)
    shared = _over(spec, reported, common)
    if all(_covers(spec, pod, common) for pod in measured):
        return shared
    own = _over(spec, reported, ready)
    replicas = len(_groups(spec, own))
    asked, asked_shared = _asked(spec, own), _asked(spec, shared)
    wanted, wanted_shared = math.ceil(asked), math.ceil(asked_shared)
    # The HPA adds none within its tolerance, but in a rollout it may run others than report.
    enough = (1 + TOLERANCE) * replicas
    if wanted == wanted_shared and (asked <= enough) == (asked_shared <= enough):
        return own
    if wanted > wanted_shared > replicas:
        return shared
    return [
        Reported(one.pod, PodState.WARMING)
        if one.reporting is PodState.MEASURED
        and not _covers(spec, one.pod, since_when(spec, one.pod))
        else one
        for one in own
    ]


def _over(spec: TriggerSpec, reported: list[Reported], since: float) -> list[Reported]:
    return [
        _measured(spec, one.pod, since) if one.reporting is PodState.MEASURED else one
        for one in reported
    ]


def _covers(spec: TriggerSpec, pod: Pod, since: float) -> bool:
    return pod.last_seen - since >= COVERED * window_seconds(spec, pod)


def _asked(spec: TriggerSpec, reported: list[Reported]) -> float:
    """Return for how many replicas the measured ones ask, not rounded up."""
    groups = _groups(spec, reported).values()
    total = sum(_load(group) for group in groups if _is_measured(group))
    return round(total, DECIMALS) / spec.threshold


def _measured(spec: TriggerSpec, pod: Pod, common: float) -> Reported:
    found = mean_load(spec, pod, max(common, since_when(spec, pod)))
    if found is None:
        return Reported(pod, PodState.WARMING)
    return Reported(pod, PodState.MEASURED, found)


def _groups(spec: TriggerSpec, reported: Sequence[Reported]) -> dict[str, list[Reported]]:
    """Return the pods of each replica."""
    groups: dict[str, list[Reported]] = defaultdict(list)
    for one in reported:
        groups[spec.pods.replica_of(one.pod.name)].append(one)
    return groups


def _is_measured(group: Sequence[Reported]) -> bool:
    return all(one.reporting is PodState.MEASURED for one in group)


def _load(group: Sequence[Reported]) -> float:
    return mean([one.load for one in group])


def _ended(
    spec: TriggerSpec, pods: Sequence[Pod], alive: Collection[str]
) -> Collection[Sequence[Pod]]:
    """Return the pods of each replica that has ended as a whole."""
    groups: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.ended and (pod.gpus or (pod.status is not None and pod.status.may_work_unseen)):
            replica = spec.pods.replica_of(pod.name)
            if replica not in alive:
                groups[replica].append(pod)
    return groups.values()


_WORST_FIRST = (*NOT_READY, *NOT_SEEN, PodState.WARMING, PodState.MEASURED)


def _replica(name: str, group: Sequence[Reported]) -> Replica:
    worst = min((one.reporting for one in group), key=_WORST_FIRST.index)
    if worst is not PodState.MEASURED:
        return Replica(name, worst, 0.0)
    return Replica(name, worst, _load(group), tuple(one.pod for one in group))


def _named(replicas: Sequence[Replica], reporting: PodState) -> tuple[str, ...]:
    return tuple(one.name for one in replicas if one.reporting is reporting)
