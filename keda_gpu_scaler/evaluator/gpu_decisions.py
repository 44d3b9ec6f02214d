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
from keda_gpu_scaler.evaluator.snapshot_cache import Reading
from keda_gpu_scaler.evaluator.tracked_trigger import GpuDecision, TrackedTrigger
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot
from keda_gpu_scaler.spec.spec import OnUnknown, TriggerSpec


def decide_gpus(
    tracked: TrackedTrigger,
    reading: Reading | str,
    target_error: str | None,
    *,
    give_up_seconds: float,
    is_observing: bool,
) -> GpuDecision:
    """Return what the GPUs say, and remember it in case the load becomes unknown.

    It is the last decision again, while all its inputs are the same. While the scale target is
    unknown, only the other workload's GPUs count. With `is_observing` no call of KEDA or the HPA
    tells that a workload exists: one that was never seen is unknown.
    """
    spec = tracked.spec
    if isinstance(reading, str):
        return GpuDecision(unknown(spec, reading, None))
    if target_error is not None:
        decided = unknown(spec, target_error, None)
        return GpuDecision(decided, _decide_neighbour(spec, decided, reading, give_up_seconds))
    if tracked.gpu is not None and _still_holds(tracked.gpu, spec, reading):
        return tracked.gpu
    snapshot, calls = reading.snapshot, tracked.hpa_calls
    asking = calls.asking(reading.clock_seconds, reading.present - reading.clock_seconds)
    context = Context(
        reading.now_for(spec),
        give_up_seconds,
        trouble=reading.trouble,
        asking=asking,
        hpa_has_stopped=calls.has_stopped(reading.clock_seconds),
    )
    if snapshot is None or not reading.is_covered:
        decided = _recalled_without_snapshot(tracked, reading, context)
    else:
        view = snapshot.of(spec.pods.namespace)
        decided = decide(spec, view, context)
        if is_observing and tracked.memory is None and is_never_seen(spec, view, decided):
            never_seen = unknown(spec, reasons.never_seen(spec), None)
            decided = replace(never_seen, evidence=decided.evidence)
        elif decided.state is State.UNKNOWN:
            decided = _recalled(tracked, reading, context, decided, view)
        else:
            tracked.memory = memory.remember(tracked.memory, decided, snapshot.at)
    tracked.gpu = GpuDecision(
        decided,
        neighbour=_decide_neighbour(spec, decided, reading, give_up_seconds),
        snapshot_age_seconds=None if snapshot is None else reading.now - snapshot.at,
        snapshot=None if snapshot is None else weakref.ref(snapshot),
        at=context.now,
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


def _recalled_without_snapshot(
    tracked: TrackedTrigger, reading: Reading, context: Context
) -> Decision:
    """Return the answer to a load that is unknown because there is no snapshot of it."""
    spec, kept, asking = tracked.spec, tracked.memory, context.asking
    if asking is not None:
        kept = memory.asked(kept, asking.at)
    recalled = memory.recall(
        kept, reading.now, reading.step_seconds, hpa_has_stopped=context.hpa_has_stopped
    )
    decided = unknown(
        spec,
        reading.trouble or f"source {spec.source}: no answer yet",
        recalled,
        hpa_has_stopped=context.hpa_has_stopped,
        has_pods=None if asking is None else reasons.ASKED,
    )
    tracked.memory = memory.remember(kept, decided, reading.now)
    return decided


def _recalled(
    tracked: TrackedTrigger,
    reading: Reading,
    context: Context,
    decided: Decision,
    view: NamespaceSnapshot,
) -> Decision:
    """Return the answer to a load that the snapshot leaves unknown, by what was known before."""
    spec, before = tracked.spec, tracked.memory
    if before is not None and before.at > view.at:  # another signal said it
        kept = memory.remember(before, decided, reading.now)
    else:
        last = decide(spec, view, replace(context, now=view.at))
        kept = memory.remember(before, last, view.at)
    if context.asking is not None:
        kept = memory.asked(kept, context.asking.at)
    tracked.memory = kept
    recalled = memory.recall(
        kept, reading.lost_at, reading.step_seconds, hpa_has_stopped=context.hpa_has_stopped
    )
    return decide(spec, view, replace(context, remembered=recalled))


def _decide_neighbour(
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
