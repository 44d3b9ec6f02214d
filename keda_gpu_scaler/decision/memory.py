"""What is remembered of a trigger in case its load becomes unknown.

Pure. Only the last known state counts, and only if it was fresh when the load became unknown: a
workload that had no pods some steps before an outage may have come back before the outage.
"""

from dataclasses import dataclass, replace

from keda_gpu_scaler.decision.decision import Decision, State

FRESH_STEPS = 3
FRESH_SECONDS = 45.0
"""KEDA polls every 30 s by default, which is two steps of 15 s; rounding down can add a third."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The last known state, its instant, and the instant at which the load became unknown."""

    state: State
    at: float
    lost_at: float | None = None


def recall(memory: Memory | None, lost_at: float, step_seconds: float) -> State | None:
    """Return the state to trust when the load is unknown since `lost_at`.

    A stale memory of a workload without pods is no reason to call it inactive. It then counts as
    `measured`, which means active.
    """
    if memory is None:
        return None
    ended = lost_at if memory.lost_at is None else memory.lost_at
    fresh_seconds = max(FRESH_STEPS * step_seconds, FRESH_SECONDS)
    if memory.state.is_gone and ended - memory.at > fresh_seconds:
        return State.MEASURED
    return memory.state


def remember(memory: Memory | None, decision: Decision, at: float) -> Memory | None:
    """Return the memory after the GPUs' decision for the instant `at`.

    If a newer memory says active, "no pods" is ignored: the workload may have come back since.
    """
    if decision.activated:
        return in_use(at)
    if decision.state is not State.UNKNOWN:
        is_older = memory is not None and not memory.state.is_gone and at <= memory.at
        return memory if is_older and decision.state.is_gone else Memory(decision.state, at)
    if memory is None or memory.lost_at is not None:
        return memory
    return replace(memory, lost_at=at)


def in_use(at: float) -> Memory:
    """Return the memory after a signal said at `at` that the workload is active.

    It counts as in use then, even if it has no pods yet.
    """
    return Memory(State.MEASURED, at)
