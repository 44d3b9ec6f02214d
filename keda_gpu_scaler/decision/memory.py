"""What is remembered of a trigger in case its load becomes unknown.

Pure. Only the last known state counts, and only if it was fresh when the load became unknown: a
workload that had no pods some steps before an outage may have come back before the outage.
"""

from dataclasses import dataclass, replace

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.times import FRESH_SECONDS, FRESH_STEPS, HPA_SECONDS


@dataclass(frozen=True, slots=True)
class Memory:
    """The last known state, its instant, and the instant at which the load became unknown."""

    state: State
    at: float
    lost_at: float | None = None
    is_idle: bool = False
    """It had pods, and none was in use."""


def recall(
    memory: Memory | None, lost_at: float, step_seconds: float, *, hpa_has_stopped: bool = False
) -> State | None:
    """Return the state to trust when the load is unknown since `lost_at`.

    A stale memory of a workload without pods is no reason to call it inactive. It then counts as
    `measured`, which means active. That it was idle is no reason either, because load may return
    unseen: except where the HPA has stopped asking, which it does when KEDA takes the last replica.
    """
    if memory is None:
        return None
    ended = lost_at if memory.lost_at is None else memory.lost_at
    is_fresh = ended - memory.at <= max(FRESH_STEPS * step_seconds, FRESH_SECONDS)
    if memory.state.is_gone:
        return memory.state if is_fresh or hpa_has_stopped else State.MEASURED
    return State.ENDED if memory.is_idle and is_fresh and hpa_has_stopped else memory.state


def remember(memory: Memory | None, decision: Decision, at: float) -> Memory | None:
    """Return the memory after the GPUs' decision for the instant `at`.

    If a newer memory says active, "no pods" is ignored: the workload may have come back since.
    """
    if decision.activated:
        return in_use(at)
    if decision.state is not State.UNKNOWN:
        is_older = memory is not None and not memory.state.is_gone and at <= memory.at
        if is_older and decision.state.is_gone:
            return memory
        is_idle = decision.active is False and not decision.state.is_gone
        return Memory(decision.state, at, is_idle=is_idle)
    if memory is None or memory.lost_at is not None:
        return memory
    return replace(memory, lost_at=at)


def asked(memory: Memory | None, asked_at: float) -> Memory | None:
    """Return the memory while the HPA asks about a workload with an unknown load.

    It asks only about one with replicas: one that was at rest a minute before is so no more.
    It asked for the last time at `asked_at`.
    """
    if memory is None or asked_at - memory.at < HPA_SECONDS:
        return memory
    return in_use(asked_at) if memory.is_idle or memory.state.is_gone else memory


def in_use(at: float) -> Memory:
    """Return the memory after a signal said at `at` that the workload is active.

    It counts as in use then, even if it has no pods yet.
    """
    return Memory(State.MEASURED, at)
