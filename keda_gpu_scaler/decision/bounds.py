"""The number that GetMetrics returns, or None to hold.

Pure. What is seen of a workload is a lower bound: replicas can do no more than they do, and what is
not seen is not added up. A lower bound may raise the number of replicas; it may never lower it. The
sum is exact if all is seen, and may lower.

`max` and `p95` take the load of the replica that has the most, or nearly so, for that of each. They
hold where the sum holds and can only raise it, so they never ask for fewer replicas than it does.
"""

from keda_gpu_scaler.decision import load
from keda_gpu_scaler.decision.load import MeasuredWorkload
from keda_gpu_scaler.decision.pod_state import PodState


def value(workload: MeasuredWorkload) -> float | None:
    """Return the number, or None to hold."""
    spec, expected, awaited = workload.spec, len(workload.replicas), _awaited(workload)
    added, is_exact = _added(workload)
    least, on_target = workload.total + added, (expected + awaited) * spec.threshold
    if (is_exact and not awaited) or least > (1 + load.TOLERANCE) * on_target:
        if spec.aggregation.is_for_all:
            return workload.asked + added
        # The HPA multiplies it by the Ready replicas, and one that is missing may be none.
        ready = expected - len(workload.of(PodState.MISSING))
        is_lower = ready < expected and least * ready <= expected**2 * spec.threshold
        return None if is_lower else least / expected
    kept = min(_kept(workload), on_target)
    if kept <= max(0.0, on_target - spec.threshold):
        return None
    return kept if spec.aggregation.is_for_all else kept / expected


def _awaited(workload: MeasuredWorkload) -> int:
    """Return the replicas that are waited for: those there are have enough to do for more."""
    shown, threshold = max(workload.sums.summed, workload.sums.newest), workload.spec.threshold
    if not workload.pending or shown > len(workload.replicas) * threshold:
        return workload.pending
    peak = workload.peak()
    return workload.pending if peak > threshold or peak >= workload.full else 0


def _added(workload: MeasuredWorkload) -> tuple[float, bool]:
    """Return what replicas do that work unseen, and whether the sum with it is exact.

    One that never reported is on its target, and above it if the others are: it can raise, and is
    no reason to lower. One that reported before does what the others do, if these are full, and
    unless there is a pod in its place.
    """
    measured, unseen = len(workload.measured), len(workload.of(PodState.UNSEEN))
    # All are measured except some that never reported, and these are no majority.
    if unseen <= measured == len(workload.replicas) - unseen:
        is_exact = measured > 0 and not (workload.sums.is_untold or workload.sums.is_brief)
        return unseen * max(workload.mean, workload.spec.threshold), is_exact
    if min(workload.measured, default=0.0) < workload.full:
        return 0.0, False
    silent = len(workload.of(PodState.SILENT))
    if workload.wanted is not None:
        silent = min(silent, max(0, workload.wanted - measured - len(workload.not_ready)))
    return silent * workload.mean, False


def _kept(workload: MeasuredWorkload) -> float:
    """Return what the others did while the rest are warming: a reason to keep them, none to raise.

    During a hold the HPA forgets for which load it started those.
    """
    warming = len(workload.of(PodState.WARMING))
    are_others_measured = 0 < warming == len(workload.replicas) - len(workload.measured)
    if not workload.measured or not are_others_measured or workload.lacks_past:
        return 0.0
    return max(workload.sums.summed, workload.sums.before)
