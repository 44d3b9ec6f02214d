"""The decision of a trigger by its GPUs alone, from one reading of a shared snapshot."""

import weakref
from dataclasses import replace

from keda_gpu_scaler.decision import memory, reasons
from keda_gpu_scaler.decision.decision import (
    Context,
    Decision,
    State,
    decide,
    is_never_seen,
    unknown,
)
from keda_gpu_scaler.decision.memory import Memory
from keda_gpu_scaler.evaluator.snapshot_cache import Reading
from keda_gpu_scaler.evaluator.tracked_trigger import GpuDecision, TrackedTrigger
from keda_gpu_scaler.spec.spec import OnUnknown, TriggerSpec


def decide_gpus(
    tracked: TrackedTrigger, reading: Reading, give_up_seconds: float, *, is_observing: bool
) -> GpuDecision:
    """Return what the GPUs say, and remember it in case the load becomes unknown.

    It is the last decision again, while all its inputs are the same. With `is_observing` no call of
    KEDA or the HPA tells that a workload exists: one that was never seen is unknown.
    """
    spec, snapshot = tracked.spec, reading.snapshot
    if tracked.gpu is not None and _still_holds(tracked.gpu, spec, reading):
        return tracked.gpu
    decided, tracked.memory = _decide_anew(
        tracked, reading, give_up_seconds, is_observing=is_observing
    )
    tracked.gpu = GpuDecision(
        decided,
        neighbour=decide_neighbour(spec, decided, reading, give_up_seconds),
        snapshot_age_seconds=None if snapshot is None else reading.now - snapshot.at,
        snapshot=None if snapshot is None else weakref.ref(snapshot),
        at=reading.now_for(spec),
    )
    return tracked.gpu


def _still_holds(gpu: GpuDecision, spec: TriggerSpec, reading: Reading) -> bool:
    """Tell whether a new decision would be the same: all its inputs are the same.

    That is so if less than a step has passed and there is no trouble. The decision for an
    unknown load also depends on memories, which can change at any time.
    """
    snapshot = reading.snapshot
    if snapshot is None or gpu.snapshot is None or gpu.snapshot() is not snapshot:
        return False
    if gpu.decision.state is State.UNKNOWN or reading.trouble is not None:
        return False
    now = reading.now_for(spec)
    is_recent = 0 <= now - gpu.at < reading.step_seconds
    return is_recent and now - snapshot.at <= spec.max_age_seconds


def _decide_anew(
    tracked: TrackedTrigger, reading: Reading, give_up_seconds: float, *, is_observing: bool
) -> tuple[Decision, Memory | None]:
    """Decide now; if the load is unknown, use what was known before."""
    spec, before, calls = tracked.spec, tracked.memory, tracked.hpa_calls
    has_stopped = calls.has_stopped(reading.clock_seconds)
    asking = calls.asking(reading.clock_seconds, reading.present - reading.clock_seconds)
    snapshot = reading.covered
    if snapshot is None:
        why = reading.trouble or f"source {spec.source}: no answer yet"
        kept = before if asking is None else memory.asked(before, asking.at)
        recalled = memory.recall(
            kept, reading.now, reading.step_seconds, hpa_has_stopped=has_stopped
        )
        has_pods = None if asking is None else reasons.ASKED
        decided = unknown(spec, why, recalled, hpa_has_stopped=has_stopped, has_pods=has_pods)
        return decided, memory.remember(kept, decided, reading.now)
    view = snapshot.of(spec.pods.namespace)
    context = Context(
        reading.now_for(spec),
        give_up_seconds,
        trouble=reading.trouble,
        asking=asking,
        hpa_has_stopped=has_stopped,
    )
    decided = decide(spec, view, context)
    if is_observing and before is None and is_never_seen(spec, view, decided):
        answer = unknown(spec, reasons.never_seen(spec), None)
        return replace(answer, evidence=decided.evidence), None
    if decided.state is not State.UNKNOWN:
        return decided, memory.remember(before, decided, snapshot.at)
    if before is not None and before.at > snapshot.at:  # another signal said it
        kept = memory.remember(before, decided, reading.now)
    else:
        last = decide(spec, view, replace(context, now=snapshot.at))
        kept = memory.remember(before, last, snapshot.at)
    if asking is not None:
        kept = memory.asked(kept, asking.at)
    recalled = memory.recall(
        kept, reading.lost_at, reading.step_seconds, hpa_has_stopped=has_stopped
    )
    return decide(spec, view, replace(context, remembered=recalled)), kept


def decide_neighbour(
    spec: TriggerSpec, decided: Decision, reading: Reading, give_up_seconds: float
) -> Decision | None:
    """Decide about the other workload, unless this workload's own GPUs already say active."""
    if spec.neighbour is None or decided.activated:
        return None
    other = replace(
        spec,
        pods=spec.neighbour,
        workload=str(spec.neighbour),
        on_unknown=OnUnknown.HOLD,
        neighbour=None,
        demand=None,
    )
    snapshot = reading.covered
    if snapshot is None:
        return unknown(other, decided.reason, None)
    context = Context(reading.now_for(spec), give_up_seconds, trouble=reading.trouble)
    return decide(other, snapshot.of(other.pods.namespace), context)
