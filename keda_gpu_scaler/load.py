"""The load of a workload: which of its replicas are measured, and what they add up to.

Pure. A pod's load is its GPUs aggregated at each instant, then the mean over the window of the
samples that count: none from before the pod had warmed up, because a model that shows 100 % while
it loads says nothing about the work there is.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from statistics import fmean

from keda_gpu_scaler import health
from keda_gpu_scaler.snapshot import Pod, Snapshot
from keda_gpu_scaler.spec import GpuAggregation, TriggerSpec

DECIMALS = 6
"""Servers differ in the 15th digit of the same mean; thresholds are compared after rounding."""
WINDOW_SECONDS = 120.0
AVERAGED_WINDOW_SECONDS = 60.0
"""The exporter's number is an average already: it needs less smoothing."""

_AGGREGATE: Mapping[GpuAggregation, Callable[[Iterable[float]], float]] = {
    GpuAggregation.AVERAGE: fmean,
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
    alive = [pod for pod in pods if not pod.ended]
    reporting = {pod.name: _reporting(spec, pod, at, now) for pod in alive}
    if any(state is not Reporting.MISSING for state in reporting.values()):
        alive = [
            pod
            for pod in alive
            if reporting[pod.name] is not Reporting.MISSING or at - pod.last_seen <= give_up_seconds
        ]
    groups: dict[str, list[Pod]] = defaultdict(list)
    for pod in alive:
        groups[spec.pods.replica_of(pod.name)].append(pod)
    return Workload(
        replicas=tuple(
            _replica(spec, name, group, reporting) for name, group in sorted(groups.items())
        ),
        reporting_pods=sum(reporting[pod.name] is not Reporting.MISSING for pod in alive),
        ended_pods=len(pods) - sum(not pod.ended for pod in pods),
    )


def window_seconds(spec: TriggerSpec, pod: Pod) -> float:
    """Return the window of a pod: the trigger's, or what suits its exporter's numbers."""
    if spec.window_seconds is not None:
        return spec.window_seconds
    return AVERAGED_WINDOW_SECONDS if pod.averaged else WINDOW_SECONDS


def _replica(
    spec: TriggerSpec, name: str, pods: list[Pod], reporting: Mapping[str, Reporting]
) -> Replica:
    states = {reporting[pod.name] for pod in pods}
    for state in (Reporting.MISSING, Reporting.WARMING):
        if state in states:
            return Replica(name, state, 0.0)
    return Replica(name, Reporting.MEASURED, fmean(_mean(spec, pod) for pod in pods))


def _reporting(spec: TriggerSpec, pod: Pod, at: float, now: float) -> Reporting:
    silence = at - pod.last_seen
    if silence > health.patience_seconds(pod.scrape_interval_seconds):
        return Reporting.MISSING
    if now - pod.sampled_at > spec.max_age_seconds:
        return Reporting.MISSING
    if pod.first_seen is not None and pod.last_seen - pod.first_seen < spec.warmup_seconds:
        return Reporting.WARMING
    return Reporting.MEASURED if _counted(spec, pod) else Reporting.MISSING


def _mean(spec: TriggerSpec, pod: Pod) -> float:
    aggregate = _AGGREGATE[spec.gpu_aggregation]
    return fmean(aggregate(values) for values in _counted(spec, pod).values())


def _counted(spec: TriggerSpec, pod: Pod) -> dict[float, list[float]]:
    """The samples of all its GPUs by instant: within the window, and after the warm-up."""
    after = pod.last_seen - window_seconds(spec, pod)
    warm = float("-inf") if pod.first_seen is None else pod.first_seen + spec.warmup_seconds
    counted: dict[float, list[float]] = defaultdict(list)
    for gpu in pod.gpus:
        for time, value in zip(gpu.times, gpu.values, strict=True):
            if after < time <= pod.last_seen and time >= warm:
                counted[time].append(value)
    return counted
