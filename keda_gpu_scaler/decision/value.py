"""The number that GetMetrics returns, or None to hold.

Pure. A sum over saturated or incomplete replicas is a lower bound: replicas can do no more than
they do, and what is not seen is not added up. A lower bound may raise the number of replicas; it
may never lower it.
"""

from keda_gpu_scaler.decision import load
from keda_gpu_scaler.decision.load import Workload
from keda_gpu_scaler.decision.pod_state import FULL, PodState, has_limit
from keda_gpu_scaler.snapshot.evidence import NamespaceEvidence
from keda_gpu_scaler.spec.spec import Aggregation, TriggerSpec


def pending(spec: TriggerSpec, found: Workload, said: NamespaceEvidence | None) -> int:
    """Return how many replicas the owner asks for that do not count yet, and are to be waited for.

    The extra pod of a rolling update is not one of them. One that was not Ready within startTimeout
    is given up, unless those that are measured are full: then it would be asked for again.
    """
    owner = spec.pods.owner
    wanted = None if said is None or owner is None else said.wanted.get(owner)
    if wanted is None:
        return 0
    late = 0 if has_limit(spec.signal) and found.peak >= FULL else len(found.stalled)
    return max(0, wanted - len(found.replicas) - len(found.ignored) - late)


def is_full(spec: TriggerSpec, found: Workload) -> bool:
    """Tell whether every measured replica can do no more."""
    measured = found.of(PodState.MEASURED)
    return has_limit(spec.signal) and all(one.load >= FULL for one in measured)


def value(spec: TriggerSpec, found: Workload, *, complete: bool) -> float | None:
    """Return the number, or None to hold.

    Args:
        spec: the trigger.
        found: the workload's replicas.
        complete: every replica that should report is measured.
    """
    expected, measured = len(found.replicas), len(found.of(PodState.MEASURED))
    if not measured:
        return None
    awaited = found.pending if found.peak > spec.threshold else 0
    enough = (1 + load.TOLERANCE) * (expected + awaited) * spec.threshold
    if (awaited or not complete) and found.total <= enough:
        return None
    return found.total if spec.aggregation is Aggregation.SUM else found.total / expected
