"""Spec + snapshot → decision: the state, the answer, and the reason in one sentence.

Pure: no clock, no I/O, no logger. Unknown is never zero: nothing but `measured` and an explicit
`zero` ends in the number 0, and nothing but a covered idle window, `ended`, `empty`, an explicit
`zero` or the memory of `ended`/`empty` ends in inactive.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from keda_gpu_scaler import activity, load, reasons
from keda_gpu_scaler.activity import Activity
from keda_gpu_scaler.load import Reporting, Workload
from keda_gpu_scaler.snapshot import Snapshot
from keda_gpu_scaler.spec import Aggregation, OnUnknown, TriggerSpec


class State(StrEnum):
    """How well the workload's load is known."""

    MEASURED = "measured"
    STARTING = "starting"
    PARTIAL = "partial"
    EMPTY = "empty"
    ENDED = "ended"
    UNKNOWN = "unknown"

    @property
    def is_gone(self) -> bool:
        """Whether the workload is known to have no pods."""
        return self in (State.EMPTY, State.ENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer for one spec from one snapshot, with its reason in one sentence."""

    state: State
    reason: str
    value: float | None
    """What GetMetrics returns; None: hold (an empty list). Never negative, NaN or infinite."""
    active: bool | None
    """What IsActive returns; None: it fails with the reason (UNAVAILABLE)."""
    refused: bool = False
    """GetMetrics fails with the reason (UNAVAILABLE): `onUnknown: error`."""
    signal: bool = False
    """A GPU above activationThreshold says active: the only thing StreamIsActive may push."""
    average: float | None = None
    """Load per replica, for people."""
    expected: int = 0
    """Replicas that should report."""
    measured: int = 0
    """Replicas whose load is known."""
    reporting_pods: int = 0
    """Pods that report right now."""


_REASONS = {
    State.MEASURED: reasons.measured,
    State.STARTING: reasons.starting,
    State.PARTIAL: reasons.partial,
    State.ENDED: reasons.ended,
}


@dataclass(frozen=True, slots=True)
class Context:
    """What a decision needs beside the trigger and the snapshot."""

    now: float
    """The time of the answer, on the source's clock."""
    give_up_seconds: float
    """How long a pod that vanished with its exporter counts as missing while others report."""
    remembered: State | None = None
    """The last known state before the load became unknown; None: nothing is."""
    trouble: str | None = None
    """Why no newer snapshot could be had, in the source's words; None: it could."""


def decide(spec: TriggerSpec, snapshot: Snapshot, context: Context) -> Decision:
    """Return the decision for one trigger.

    Args:
        spec: the trigger.
        snapshot: the newest snapshot of its source; a failed fetch does not age it.
        context: the time, and what is known from before.
    """
    pods = load.pods_of(spec, snapshot)
    found = load.workload(spec, pods, snapshot.at, context.now, context.give_up_seconds)
    busy = activity.activity(spec, pods, snapshot.at, context.now)
    state = _state(spec, snapshot, found, context.now)
    if state is State.UNKNOWN:
        why = reasons.unknown(spec, found, context.now - snapshot.at, context.trouble)
        return replace(
            unknown(spec, why, context.remembered, signal=busy.active),
            expected=len(found.replicas),
            reporting_pods=found.reporting_pods,
        )
    complete = spec.pods.namespace in snapshot.complete_in
    return _known(spec, state, found, busy, complete=complete)


def unknown(
    spec: TriggerSpec, why: str, remembered: State | None, *, signal: bool = False
) -> Decision:
    """Return the answer of `onUnknown` to a load nobody knows.

    Args:
        spec: the trigger.
        why: what is not known, and why: a clause.
        remembered: the last known state before; None: nothing is remembered.
        signal: a GPU said active lately: that holds, whatever else is unknown.
    """
    policy = OnUnknown.HOLD if signal else spec.on_unknown
    answer = Decision(state=State.UNKNOWN, reason=why, value=None, active=None, signal=signal)
    if policy is OnUnknown.ZERO:
        return replace(answer, value=0.0, active=False, reason=f"{why}: 0 by onUnknown zero")
    if policy is OnUnknown.ERROR:
        return replace(answer, refused=True, reason=f"{why}: an error by onUnknown error")
    active = _remembered_activity(remembered, signal=signal)
    held = reasons.held(active, signal=signal)
    return replace(answer, active=active, reason=f"{why}: {held}")


def _remembered_activity(remembered: State | None, *, signal: bool) -> bool | None:
    if signal:
        return True
    return None if remembered is None else not remembered.is_gone


def _state(spec: TriggerSpec, snapshot: Snapshot, found: Workload, now: float) -> State:
    if not found.replicas:
        stale = now - snapshot.at > spec.max_age_seconds
        believed = found.ended_pods or spec.pods.namespace in snapshot.absence_known_in
        return State.ENDED if believed and not stale else State.UNKNOWN
    if not found.reporting_pods:
        return State.UNKNOWN
    if found.of(Reporting.MISSING) or spec.pods.namespace not in snapshot.complete_in:
        return State.PARTIAL
    return State.STARTING if found.of(Reporting.WARMING) else State.MEASURED


def _known(
    spec: TriggerSpec, state: State, found: Workload, busy: Activity, *, complete: bool
) -> Decision:
    measured = len(found.of(Reporting.MEASURED))
    value = _value(spec, state, found) if complete else None
    return Decision(
        state=state,
        reason=_REASONS[state](spec, found, busy, value),
        value=value,
        active=busy.active or _active_without_signal(state, busy),
        signal=busy.active,
        average=found.total / measured if measured else None,
        expected=len(found.replicas),
        measured=measured,
        reporting_pods=found.reporting_pods,
    )


def _active_without_signal(state: State, busy: Activity) -> bool:
    """A pod we cannot see, or one that is starting, is not idle; nor is a window half covered."""
    if state is State.MEASURED:
        return not busy.covered
    return state in (State.STARTING, State.PARTIAL)


def _value(spec: TriggerSpec, state: State, found: Workload) -> float | None:
    """The number, or None to hold.

    While some replicas are not measured the sum is too small by what nobody knows. It is an answer
    only where it asks for more replicas than there are: then the truth asks for more still.
    """
    expected = len(found.replicas)
    if not found.of(Reporting.MEASURED):
        return None
    enough = (1 + load.TOLERANCE) * expected * spec.threshold
    if state is not State.MEASURED and found.total <= enough:
        return None
    return found.total if spec.aggregation is Aggregation.SUM else found.total / expected
