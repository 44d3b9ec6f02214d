"""How a workload's pods are together: at its limit, a new one counts by what it shows first.

Pure. A pod counts once its samples cover half the window, because few samples of a bursty load are
often far too high. But bursts do not fill every sample of every pod for as long as that: where all
are full, the first of a new pod is as good as any. A climb from one saturated pod then takes the
start-up time and the exporter's delay for each rung, and no more.
"""

from collections.abc import Sequence

from keda_gpu_scaler import condition
from keda_gpu_scaler.condition import Reporting
from keda_gpu_scaler.snapshot import Pod
from keda_gpu_scaler.spec import Signal, TriggerSpec

FULL = 95.0
"""What a GPU shows that could do no more; gaps between batches leave it a little below 100."""


def conditions(spec: TriggerSpec, pods: Sequence[Pod], at: float, now: float) -> list[Reporting]:
    """Return how each of a workload's pods is that have not ended.

    Args:
        spec: the trigger.
        pods: the pods that may report.
        at: the snapshot's instant: silence is measured up to here, so a failed fetch adds none.
        now: the time of the answer: the age of samples is measured up to here.
    """
    found = [condition.of(spec, pod, at, now) for pod in pods]
    if not _is_full(spec, pods, found):
        return found
    return [Reporting.MEASURED if one is Reporting.WARMING else one for one in found]


def _is_full(spec: TriggerSpec, pods: Sequence[Pod], found: Sequence[Reporting]) -> bool:
    """Tell whether all pods show full GPUs only, and one of them has for half a window."""
    if not _has_limit(spec.signal) or not {Reporting.MEASURED, Reporting.WARMING} <= set(found):
        return False
    ready = [pod for pod, one in zip(pods, found, strict=True) if one not in condition.NOT_READY]
    samples = [condition.counted(spec, pod, condition.since_when(spec, pod)) for pod in ready]
    return all(one and min(map(min, one.values())) >= FULL for one in samples)


def _has_limit(signal: Signal) -> bool:
    """Tell whether it shows work that ends at 100; memory is kept without any."""
    return signal.is_percentage and signal is not Signal.MEMORY
