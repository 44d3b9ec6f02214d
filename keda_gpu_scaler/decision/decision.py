"""TriggerSpec + snapshot → decision: the state, the answer, and the reason in one sentence.

Pure: no clock, no I/O, no logger. Unknown is never zero. Of the load, only `measured`, `empty` and
an explicit `zero` give the number 0. Only a covered idle window, `ended`, `empty`, pods that were
not Ready in time, an explicit `zero` or the memory of `ended`/`empty` give inactive.

`Memory` keeps the last known state of a trigger, for the time when its load becomes unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from keda_gpu_scaler.decision import activity, load, reasons
from keda_gpu_scaler.decision.activity import Activity
from keda_gpu_scaler.decision.load import MeasuredWorkload
from keda_gpu_scaler.decision.pod_state import (
    NEVER,
    NOT_SEEN,
    PodState,
    is_freed,
    ready_since,
    replica_of,
)
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.snapshot.snapshot import NamespaceSnapshot, Pod
from keda_gpu_scaler.spec.spec import OnUnknown, TriggerSpec
from keda_gpu_scaler.times import (
    ENDING_SECONDS,
    FRESH_SECONDS,
    FRESH_STEPS,
    HPA_SECONDS,
    NO_GPU_SECONDS,
    UNREAD_SECONDS,
)


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
    """The answer for one trigger from one snapshot, with its reason in one sentence."""

    state: State
    reason: str
    value: float | None
    """What GetMetrics returns; None: hold (an empty list). Never negative, NaN or infinite."""
    active: bool | None
    """What IsActive returns; None: it fails with the reason (UNAVAILABLE)."""
    refused: bool = False
    """GetMetrics fails with the reason (UNAVAILABLE): `onUnknown: error`."""
    activated: bool = False
    """A GPU above activationThreshold or another signal said active: the only thing that
    StreamIsActive may push."""
    expected: int = 0
    """Replicas that should report."""
    starting: int = 0
    """Replicas that were never Ready, which need not report."""
    reporting_pods: int = 0
    """Pods that report right now."""
    wanted: int | None = None
    """Replicas that the owner asks for by its own count; None: not known."""
    remembered: State | None = None
    """The last known state, if the load is unknown now; None: nothing is remembered."""
    unlisted: str = ""
    """That the cluster has no such workload, as a clause, if it does not list it."""
    is_unread: bool = False
    """No exporter shows a pod of it that should be shown: what the source has may say why."""
    shows_no_gpu: bool = False
    """Its pods have been Ready for long, and no exporter ever showed one: exporters say nothing of
    its servers, of which none is missing."""

    # For people; no replica rests on what follows.
    average: float | None = None
    """Load per replica."""
    never_seen: bool = False
    """No exporter shows a pod of it, and one should have by now, or no workload has its name."""
    measured: int = 0
    """Replicas with a known load."""
    evidence: EvidenceSource | None = None
    """The evidence source for which pods there are; None: there is no snapshot yet."""
    ignored: tuple[str, ...] = ()
    """Ready pods that ask for no GPU and never showed one, while others of the workload did."""
    unseen: tuple[str, ...] = ()
    """Ready replicas that may ask for a GPU, of which no exporter ever showed one."""
    unschedulable: int = 0
    """Replicas with a pod that has no node, as far as the cluster shows it."""
    unschedulable_since: float | None = None
    """Since when the first of them is; None: there is none."""
    futile: str = ""
    """The last scale-out, as a sentence, if it did not help."""

    @property
    def replicas(self) -> int:
        """The replicas by the owner's own count, else those that should report."""
        return self.expected if self.wanted is None else self.wanted

    @property
    def is_zero_by_choice(self) -> bool:
        """Whether the load is unknown and the trigger answers 0 to that (`onUnknown: zero`)."""
        return self.state is State.UNKNOWN and self.value is not None

    @property
    def shows_pods(self) -> bool:
        """Whether it is known that the workload has pods now."""
        known = self.state in (State.MEASURED, State.STARTING, State.PARTIAL)
        return known or bool(self.reporting_pods or self.expected)

    @property
    def has_no_pods(self) -> bool:
        """Whether the workload is known to have no pods, now or from before."""
        return (self.remembered or self.state).is_gone


class Asking(NamedTuple):
    """The calls of an HPA that goes on asking."""

    since: float
    at: float
    """When it asked for the last time."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a decision needs beside the trigger and the snapshot."""

    now: float
    """The time of the answer, on the source's clock."""
    remembered: State | None = None
    """The last known state before the load became unknown; None: nothing is remembered."""
    trouble: str | None = None
    """Why there is no newer snapshot, in the source's words; None: no trouble."""
    asking: Asking | None = None
    """The HPA asks about the workload, which it does while that has replicas; None: it does not."""
    hpa_has_stopped: bool = False
    """It asked before, and not during the polls of the last minute."""


def decide(spec: TriggerSpec, view: NamespaceSnapshot, context: Context) -> Decision:
    """Return the decision for one trigger.

    `view` is its namespace in the newest snapshot of its source; a failed fetch does not change it.
    """
    pods = load.pods_of(spec, view)
    workload = load.workload(spec, pods, view, context.now)
    unlisted = unlisted_workload(spec, view, context.now, pods)
    state = State.UNKNOWN if unlisted else _state(workload, context.now)
    state, workload = _by_asking(state, workload, context)
    is_known = state is not State.UNKNOWN
    measured = workload.measured if is_known else ()
    number = _number(state, workload)
    busy = activity.activity(spec, pods, view.at, context.now)
    is_unread = not unlisted and _is_unread(state, workload)
    is_fresh = context.now - view.at <= spec.max_age_seconds
    decided = Decision(
        state=state,
        reason=unlisted or _reason(state, workload, busy, number, context),
        value=number,
        active=_is_active(state, workload, busy) if is_known else None,
        activated=busy.active,
        average=workload.mean if measured else None,
        expected=len(workload.replicas),
        starting=len(workload.not_ready),
        wanted=workload.wanted if is_fresh else None,
        measured=len(measured),
        reporting_pods=workload.reporting_pods,
        evidence=view.evidence_source,
        ignored=workload.ignored,
        unseen=workload.names(PodState.UNSEEN),
        unlisted=unlisted,
        is_unread=is_unread,
        never_seen=bool(unlisted) or (is_unread and _was_never_seen(state, workload)),
        shows_no_gpu=is_fresh and _shows_no_gpu(workload),
        # What was known before was about other pods than those of the scale target.
        remembered=None if is_known or unlisted else context.remembered,
    )
    if not is_known:
        is_listed = is_fresh and workload.is_listed
        decided = _by_on_unknown(spec, decided, context, is_listed=is_listed)
    return _with_troubles(workload, decided) if is_fresh else decided


def _number(state: State, workload: MeasuredWorkload) -> float | None:
    """Return the number of the load; None: hold. One that ended holds, and goes as inactive."""
    if state is State.EMPTY:
        return 0.0
    is_summed = state is not State.UNKNOWN and not workload.spec.is_by_demand
    return load.value(workload) if is_summed and workload.view.is_complete else None


_BY_REPLICAS = {
    State.MEASURED: reasons.measured,
    State.STARTING: reasons.starting,
    State.PARTIAL: reasons.partial,
}


def _reason(
    state: State, workload: MeasuredWorkload, busy: Activity, number: float | None, context: Context
) -> str:
    if state in _BY_REPLICAS:
        return _BY_REPLICAS[state](workload, busy, number)
    if state is State.UNKNOWN:
        return reasons.unknown(workload, context.now - workload.view.at, context.trouble)
    return reasons.empty(workload) if state is State.EMPTY else reasons.ended(workload)


def unlisted_workload(
    spec: TriggerSpec, view: NamespaceSnapshot, now: float, pods: Sequence[Pod]
) -> str:
    """Say that there is no such workload, if none of its pods is known and the cluster lists none.

    Its name is a mistake then, and the scale target may have pods. That is not `ended`.
    """
    evidence, owner = view.evidence, spec.pods.owner
    is_fresh = now - view.at <= spec.max_age_seconds
    if pods or evidence is None or owner is None or spec.only_shown or not is_fresh:
        return ""
    return reasons.unlisted(spec, owner, evidence) if evidence.lacks(owner) else ""


def _is_unread(state: State, workload: MeasuredWorkload) -> bool:
    """Tell whether exporters do not show what they should have shown by now.

    A workload of which nothing was ever seen, by exporters alone, may be one that they do not show.
    """
    view = workload.view
    if not workload.pods and view.evidence is None:
        return state in {State.ENDED, State.UNKNOWN, State.STARTING}
    has_query = workload.spec.query is not None
    if workload.is_only_asked_about or (has_query and not workload.replicas):
        return state in {State.UNKNOWN, State.STARTING}
    return any(
        reported.state in NOT_SEEN
        and (not reported.pod.was_seen or reported.pod.is_unnamed)
        and view.at - ready_since(reported.pod) >= UNREAD_SECONDS
        for reported in workload.reported
    )


def _was_never_seen(state: State, workload: MeasuredWorkload) -> bool:
    return not state.is_gone and not any(pod.was_seen for pod in workload.pods)


def _shows_no_gpu(workload: MeasuredWorkload) -> bool:
    """Tell whether every pod is Ready, for so long that exporters that show GPUs of it would have.

    No pod may be overlooked, now or in the last hour: one that was shown works unseen.
    """
    spec, view = workload.spec, workload.view
    is_listed = view.evidence is not None and view.evidence.absence_known and view.shows_every_pod
    if not (spec.is_by_demand and is_listed and load.are_pods_known(spec, view)):
        return False
    ready = view.at - NO_GPU_SECONDS
    return bool(workload.replicas and not workload.pending) and all(
        not pod.was_seen
        and (pod.ended or (pod.status and pod.status.ready and ready_since(pod) <= ready))
        for pod in workload.pods
    )


def _state(workload: MeasuredWorkload, now: float) -> State:
    """Return the state of a workload at the time of the answer."""
    spec, view = workload.spec, workload.view
    if now - view.at > spec.max_age_seconds or not load.are_pods_known(spec, view):
        return State.UNKNOWN
    if not workload.replicas:
        return _state_without_replicas(workload)
    are_freed = all(is_freed(spec, reported.pod, view.at) for reported in workload.reported)
    if not workload.reporting_pods and not are_freed:
        return State.UNKNOWN
    if not view.is_complete:
        return State.PARTIAL
    if len(workload.measured) == len(workload.replicas):
        return State.MEASURED
    return State.PARTIAL if workload.of(*NOT_SEEN) else State.STARTING


def _state_without_replicas(workload: MeasuredWorkload) -> State:
    """Return the state if no pod should report: none is Ready yet, or there is none."""
    spec, view = workload.spec, workload.view
    if workload.not_ready:
        return State.STARTING
    if workload.is_listed:
        return State.UNKNOWN  # a pod exists, but its state is unknown
    evidence, owner = None if spec.only_shown else view.evidence, spec.pods.owner
    is_absent = bool(workload.ended_pods) or view.absence_known
    if evidence is not None:
        if evidence.denies(owner, workload.last_listed):
            return State.EMPTY
        if evidence.omits(owner) and not workload.ended_pods:
            return State.UNKNOWN  # the list is not whole yet, or the name is a mistake
        is_absent = is_absent or evidence.absence_known
    return State.ENDED if is_absent else State.UNKNOWN


def _by_asking(
    state: State, workload: MeasuredWorkload, context: Context
) -> tuple[State, MeasuredWorkload]:
    """Return what holds where no pod is left, and the HPA asks about replicas all the same.

    It may ask once more about pods that have just gone, and what the cluster has said since holds.
    """
    gone_at = max((pod.last_seen for pod in workload.pods), default=NEVER) + HPA_SECONDS
    if not state.is_gone or context.asking is None or context.asking.at < gone_at:
        return state, workload
    since, evidence = max(context.asking.since, gone_at), workload.view.evidence
    if evidence is not None and since <= evidence.scraped_at:
        return state, workload
    is_young = context.now - since < workload.spec.start_timeout_seconds
    state = State.STARTING if is_young else State.UNKNOWN
    return state, replace(workload, is_only_asked_about=True)


def _is_active(state: State, workload: MeasuredWorkload, busy: Activity) -> bool:
    """Tell whether a GPU is in use or may be: unseen or starting pods, or a window not covered."""
    spec, view = workload.spec, workload.view
    if busy.active or workload.of(PodState.STARTING) or workload.is_only_asked_about:
        return True
    if state.is_gone and workload.wanted and view.evidence is not None:
        # Its pods end, and its owner asks for others: a rollout that recreates them.
        is_listed = workload.last_listed >= view.evidence.scraped_at
        return is_listed and view.at - workload.ending_since > ENDING_SECONDS
    is_known = state is State.MEASURED or (
        state is State.PARTIAL
        and view.is_complete
        and all(
            reported.state is PodState.MEASURED or is_freed(spec, reported.pod, view.at)
            for reported in workload.reported
        )
    )
    return not busy.covered if is_known else bool(workload.replicas)


def unknown(spec: TriggerSpec, why: str, context: Context) -> Decision:
    """Return the answer of `onUnknown` where there is no snapshot to decide from.

    `why` is a clause.
    """
    decided = Decision(
        state=State.UNKNOWN, reason=why, value=None, active=None, remembered=context.remembered
    )
    return _by_on_unknown(spec, decided, context)


def _by_on_unknown(
    spec: TriggerSpec, decided: Decision, context: Context, *, is_listed: bool = False
) -> Decision:
    """Return the answer to an unknown load; that a GPU was busy holds, whatever else is unknown."""
    why, remembered = decided.reason, decided.remembered
    policy = OnUnknown.HOLD if decided.activated else spec.on_unknown
    if policy is OnUnknown.ZERO:
        return replace(decided, value=0.0, active=False, reason=f"{why}: 0 by onUnknown zero")
    if policy is OnUnknown.ERROR:
        return replace(decided, refused=True, reason=f"{why}: an error by onUnknown error")
    active: bool | None = True
    if decided.activated:
        held = "kept active: a GPU was busy within activationWindow"
    elif remembered is None and (is_listed or context.asking is not None):
        held = f"kept active: {reasons.LISTED if is_listed else reasons.ASKED}"
    elif remembered is None:
        active = None
        held = "and nothing remembered tells whether the workload is active"
    elif not remembered.is_gone:
        held = "kept active: it had pods when last seen"
    elif context.hpa_has_stopped:
        active = False
        held = "inactive: it was idle when last seen, and the HPA has stopped asking about it"
    else:
        active = False
        held = "inactive: it had no pods when last seen"
    kept = "" if spec.is_by_demand else "hold, "
    return replace(decided, active=active, reason=f"{why}: {kept}{held}")


def _with_troubles(workload: MeasuredWorkload, decided: Decision) -> Decision:
    """Return the decision with the metrics named that are stuck, and the unschedulable replicas.

    The answer is the same. A group is unschedulable if one of its pods is.
    """
    said = reasons.stuck(workload.pods)
    waiting = [
        (pod.status.unschedulable, replica_of(workload.spec, pod))
        for pod in workload.pods
        if pod.status and pod.status.unschedulable and not pod.ended
    ]
    if waiting:
        first, _ = min(waiting)
        replicas = len({replica for _, replica in waiting})
        said.append(reasons.unschedulable(replicas, decided.wanted, first, workload.view.at))
        decided = replace(decided, unschedulable=replicas, unschedulable_since=first.since)
    return replace(decided, reason="; ".join((decided.reason, *said))) if said else decided


def is_never_seen(spec: TriggerSpec, view: NamespaceSnapshot, decided: Decision) -> bool:
    """Tell whether a workload counts as gone although nothing has shown that it exists.

    A name that no workload has looks the same. Its owner's own count proves that it exists.
    """
    evidence = view.evidence
    is_counted = evidence is not None and spec.pods.owner in evidence.without_pods
    return decided.state.is_gone and not is_counted and not load.pods_of(spec, view)


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered of a trigger in case its load becomes unknown.

    Only the last known state counts, and only if it was fresh when the load became unknown: a
    workload that had no pods some steps before an outage may have come back before the outage.
    """

    state: State
    at: float
    lost_at: float | None = None
    """When the load became unknown; None: it is known."""
    is_idle: bool = False
    """It had pods, and none was in use."""

    @classmethod
    def in_use(cls, at: float) -> "Memory":
        """Return the memory after a signal said at `at` that the workload is active.

        It counts as in use then, even if it has no pods yet.
        """
        return cls(State.MEASURED, at)


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
        return Memory.in_use(at)
    if decision.state is not State.UNKNOWN:
        is_older = memory is not None and not memory.state.is_gone and at <= memory.at
        if is_older and decision.state.is_gone:
            return memory
        is_idle = decision.active is False and not decision.state.is_gone
        return Memory(decision.state, at, is_idle=is_idle)
    if memory is None or memory.lost_at is not None:
        return memory
    return replace(memory, lost_at=at)


def remember_call(memory: Memory | None, asked_at: float) -> Memory | None:
    """Return the memory after the HPA asked at `asked_at` about a workload with an unknown load.

    The HPA asks only about a workload with replicas. If this one was idle or had no pods a minute
    before, it counts as in use again.
    """
    if memory is None or asked_at - memory.at < HPA_SECONDS:
        return memory
    return Memory.in_use(asked_at) if memory.is_idle or memory.state.is_gone else memory
