"""What is remembered of a trigger for the time when its load becomes unknown.

Pure. Only the last known state counts, and only if it was fresh when knowledge was lost: a workload
that was gone some steps before an outage may well have come back before it.
"""

from dataclasses import dataclass, replace

from keda_gpu_scaler.decision.decision import Decision, State

FRESH_STEPS = 3
FRESH_SECONDS = 45.0
"""KEDA polls every 30 s by default, which is two steps of 15 s; rounding down can add a third."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The last known state, the instant it speaks of, and the instant at which knowledge ended."""

    state: State
    at: float
    lost_at: float | None = None


def recall(memory: Memory | None, lost_at: float, step_seconds: float) -> State | None:
    """Return the state to trust when the load is unknown since `lost_at`.

    A stale memory of a workload without pods is no reason to call it inactive: it is then trusted
    no further than "it was known", which means active.
    """
    if memory is None:
        return None
    ended = lost_at if memory.lost_at is None else memory.lost_at
    fresh_seconds = max(FRESH_STEPS * step_seconds, FRESH_SECONDS)
    if memory.state.is_gone and ended - memory.at > fresh_seconds:
        return State.MEASURED
    return memory.state


def remember(memory: Memory | None, decision: Decision, at: float) -> Memory | None:
    """Return the memory after what the GPUs showed of the instant `at`.

    A workload without pods at an instant before something called it active may have come since.
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
    """Return the memory after something called the workload active at `at`.

    It is not at rest then, even if it has no pods yet.
    """
    return Memory(State.MEASURED, at)
