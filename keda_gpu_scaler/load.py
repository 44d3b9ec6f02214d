"""The load of a workload: which of its replicas are measured, and what they add up to.

Pure. A pod's load is its GPUs aggregated at each instant, then the mean over the window of the
samples that count: none from before the pod had warmed up, because a model that shows 100 % while
it loads says nothing about the work there is.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from keda_gpu_scaler import health
from keda_gpu_scaler.snapshot import Pod, Snapshot
from keda_gpu_scaler.spec import GpuAggregation, TriggerSpec

DECIMALS = 6
"""Servers differ in the 15th digit of the same mean; thresholds are compared after rounding."""
TOLERANCE = 0.1
"""The HPA changes nothing while a value is this near to its target (its default)."""
WINDOW_SECONDS = 120.0
AVERAGED_WINDOW_SECONDS = 60.0
"""The exporter's number is an average already: it needs less smoothing."""


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


_AGGREGATE: Mapping[GpuAggregation, Callable[[list[float]], float]] = {
    GpuAggregation.AVERAGE: _mean,
    GpuAggregation.MAX: max,
    GpuAggregation.SUM: sum,
}


class Reporting(Enum):
    """Whether a pod's load is known right now."""

    MEASURED = auto()
    WARMING = auto()
    MISSING = auto()


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica: a pod, or the pods of one LeaderWorkerSet group."""

    name: str
    reporting: Reporting
    load: float


@dataclass(frozen=True, slots=True)
class Workload:
    """The replicas that should report, and what they are known to carry."""

    replicas: tuple[Replica, ...]
    reporting_pods: int
    ended_pods: int

    def of(self, reporting: Reporting) -> list[Replica]:
        """Return the replicas in one condition."""
        return [replica for replica in self.replicas if replica.reporting is reporting]

    @property
    def total(self) -> float:
        """The sum over the measured replicas."""
        return round(sum(replica.load for replica in self.of(Reporting.MEASURED)), DECIMALS)


def pods_of(spec: TriggerSpec, snapshot: Snapshot) -> list[Pod]:
    """Return exactly the workload's pods, ended ones included."""
    candidates = snapshot.pods_of(spec.pods.namespace, spec.pods.prefix)
    return [pod for pod in candidates if spec.pods.matches(pod.name)]


def workload(
    spec: TriggerSpec, pods: Sequence[Pod], at: float, now: float, give_up_seconds: float
) -> Workload:
    """Return the workload's replicas with their loads.

    Args:
        spec: the trigger.
        pods: the workload's pods, as `pods_of` finds them.
        at: the snapshot's instant: silence is measured up to here, so a failed fetch adds none.
        now: the time of the answer: the age of samples is measured up to here.
        give_up_seconds: how long a pod that vanished with its exporter counts as missing while
            others report.
    """
    alive = [_reported(spec, pod, at, now) for pod in pods if not pod.ended]
    if any(one.reporting is not Reporting.MISSING for one in alive):
        alive = [one for one in alive if not one.is_given_up(at - give_up_seconds)]
    groups: dict[str, list[_Reported]] = defaultdict(list)
    for one in alive:
        groups[spec.pods.replica_of(one.pod.name)].append(one)
    return Workload(
        replicas=tuple(_replica(name, group) for name, group in sorted(groups.items())),
        reporting_pods=sum(one.reporting is not Reporting.MISSING for one in alive),
        ended_pods=sum(pod.ended for pod in pods),
    )


def window_seconds(spec: TriggerSpec, pod: Pod) -> float:
    """Return the window of a pod: the trigger's, or what suits its exporter's numbers."""
    if spec.window_seconds is not None:
        return spec.window_seconds
    return AVERAGED_WINDOW_SECONDS if pod.averaged else WINDOW_SECONDS


@dataclass(frozen=True, slots=True)
class _Reported:
    """One pod with what is known of its load."""

    pod: Pod
    reporting: Reporting
    load: float = 0.0

    def is_given_up(self, before: float) -> bool:
        return self.reporting is Reporting.MISSING and self.pod.last_seen < before


def _replica(name: str, pods: list[_Reported]) -> Replica:
    for state in (Reporting.MISSING, Reporting.WARMING):
        if any(one.reporting is state for one in pods):
            return Replica(name, state, 0.0)
    return Replica(name, Reporting.MEASURED, _mean([one.load for one in pods]))


def _reported(spec: TriggerSpec, pod: Pod, at: float, now: float) -> _Reported:
    silence = at - pod.last_seen
    if silence > health.patience_seconds(pod.scrape_interval_seconds):
        return _Reported(pod, Reporting.MISSING)
    if now - pod.sampled_at > spec.max_age_seconds:
        return _Reported(pod, Reporting.MISSING)
    if pod.first_seen is not None and pod.last_seen - pod.first_seen < spec.warmup_seconds:
        return _Reported(pod, Reporting.WARMING)
    loads = _loads(spec, pod)
    return (
        _Reported(pod, Reporting.MEASURED, _mean(loads))
        if loads
        else _Reported(pod, Reporting.MISSING)
    )


def _loads(spec: TriggerSpec, pod: Pod) -> list[float]:
    """The pod's load at each instant that counts: within the window, and after the warm-up.

    An instant with a refused sample does not: what is left of a load is not the load.
    """
    after = pod.last_seen - window_seconds(spec, pod)
    warm = float("-inf") if pod.first_seen is None else pod.first_seen + spec.warmup_seconds
    refused = {time for gpu in pod.gpus for time in gpu.refused}
    counted: dict[float, list[float]] = defaultdict(list)
    for gpu in pod.gpus:
        for time, value in zip(gpu.times, gpu.values, strict=True):
            if after < time <= pod.last_seen and time >= warm and time not in refused:
                counted[time].append(value)
    aggregate = _AGGREGATE[spec.gpu_aggregation]
    return [aggregate(values) for values in counted.values()]
