"""The number that GetMetrics returns, or None to hold.

Pure. A sum over saturated or incomplete replicas is a lower bound: replicas can do no more than
they do, and what is not seen is not added up. A lower bound may raise the number of replicas; it
may never lower it.

`max` and `p95` take the load of the replica that has the most, or nearly so, for that of each. They
hold where the sum holds and can only raise it, so they never ask for fewer replicas than it does.
"""

from keda_gpu_scaler.decision import load
from keda_gpu_scaler.decision.load import MeasuredWorkload
from keda_gpu_scaler.decision.pod_state import PodState, full_load
from keda_gpu_scaler.spec.spec import TriggerSpec


def value(spec: TriggerSpec, workload: MeasuredWorkload) -> float | None:
    """Return the number, or None to hold."""
    expected, measured = len(workload.replicas), len(workload.measured)
    unseen = len(workload.of(PodState.UNSEEN))
    if not measured and not workload.total:
        return None
    awaited = workload.pending
    shown = max(workload.sums.summed, workload.sums.newest)
    if awaited and shown <= expected * spec.threshold:
        peak = load.peak(spec, workload.of(PodState.MEASURED))
        awaited *= peak > spec.threshold or peak >= full_load(spec, workload.reported)
    enough = (1 + load.TOLERANCE) * (expected + awaited) * spec.threshold
    # All are measured except some that never reported, and these are no majority.
    is_known = unseen <= measured == expected - unseen
    added = 0.0 if measured == expected else _load_unseen(spec, workload, is_known=is_known)
    total = workload.total + added
    is_bound = awaited or workload.sums.is_untold or not is_known
    if total <= enough and (is_bound or workload.sums.is_brief or not measured):
        # During a hold the HPA forgets for which load it started the replicas that are warming.
        warming = len(workload.of(PodState.WARMING))
        are_kept = measured and warming == expected - measured > 0 and not workload.lacks_past
        needed = max(workload.sums.summed, workload.sums.before) if are_kept else 0.0
        if needed <= (expected + awaited - 1) * spec.threshold:
            return None
        total = min(needed, (expected + awaited) * spec.threshold)
        return total if spec.aggregation.is_for_all else total / expected
    if not spec.aggregation.is_for_all:
        # The HPA multiplies it by the Ready replicas, and one that is missing may be none.
        ready = expected - len(workload.of(PodState.MISSING))
        is_lower = ready < expected and total * ready <= expected**2 * spec.threshold
        return None if is_lower else total / expected
    return workload.total_by(spec.aggregation) + added


def _load_unseen(spec: TriggerSpec, workload: MeasuredWorkload, *, is_known: bool) -> float:
    """Return the load of the replicas that are known to work unseen, as far as it can be told.

    One that reported before does what the others do, if these are full, and unless there is a pod
    in its place. One that never did is on its target, and above it if the others are: it can raise,
    and is no reason to lower.
    """
    if is_known:
        return len(workload.of(PodState.UNSEEN)) * max(workload.mean, spec.threshold)
    is_full = min(workload.measured, default=0.0) >= full_load(spec, workload.reported)
    silent = len(workload.of(PodState.SILENT))
    if workload.wanted is not None:
        replaced = len(workload.measured) + len(workload.not_ready)
        silent = min(silent, max(0, workload.wanted - replaced))
    return silent * workload.mean if is_full else 0.0
