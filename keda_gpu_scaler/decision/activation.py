"""What other signals do to a decision: another workload's GPUs, an alert, a demand.

Pure. They are checked in this order after the workload's own GPUs. The first that says active
decides, and later ones need not be queried. An unknown signal neither stops a workload that has
pods nor wakes one that has none. While one says active, an unknown or empty load is held.

Only a demand has a number. Without `threshold` it replaces the number of the load; otherwise, with
`demandThreshold`, it is a metric of its own. While servers may be missing in it, it may raise and
never lower.
"""

import math
from dataclasses import replace

from keda_gpu_scaler.decision import reasons
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.spec.spec import Demand, OnEmpty, OnUnknown, TriggerSpec

_IN_DOUBT = {
    State.MEASURED: "samples do not cover activationWindow yet, or a pod is not Ready yet",
    State.STARTING: "its pods are starting",
    State.PARTIAL: "not all of its pods are seen",
    State.UNKNOWN: "its load is unknown",
}
"""Why another workload may be in use although no GPU of it is seen busy, by its state."""
AFTER_GAP = "servers may be missing just after a gap"


def apply_neighbour_and_alert(
    spec: TriggerSpec, decided: Decision, neighbour: Decision | None, alert: str | None
) -> Decision:
    """Return a decision after the signals that need no query: another workload, an alert.

    `decided` is what the workload's own GPUs say, and `neighbour` the decision for the trigger's
    activationWorkload, with the same levels and windows. `alert` is the name of one that fires.
    """
    is_held, name = not spec.is_by_demand, spec.neighbour
    if not decided.activated and neighbour is not None:
        if neighbour.activated:
            decided = _active(decided, f"GPUs of {name} are busy", is_held=is_held)
        elif neighbour.active is False:
            state = "has no pods" if neighbour.has_no_pods else "is idle"
            decided = with_reason(decided, f"{name} {state}")
        else:
            why = neighbour.unlisted or _IN_DOUBT[neighbour.state]
            doubt = f"{name} may be in use ({why})"
            decided = _with_unknown_signal(decided, doubt, OnEmpty.INACTIVE)
    if not decided.activated and alert is not None:
        decided = _active(decided, f"alert {alert} fires", is_held=is_held)
    return decided


def needs_demand(spec: TriggerSpec, decided: Decision) -> bool:
    """Tell whether IsActive fails if the demand is not known."""
    return activate_by_demand(spec, decided, Demand(None)).active is None


def activate_by_demand(spec: TriggerSpec, decided: Decision, demand: Demand) -> Decision:
    """Return a decision after the demand was queried, if nothing said active before."""
    wanted = spec.demand
    if wanted is None or decided.activated:
        return decided
    name = f"demand of {wanted.preset}" if wanted.preset else "demand"
    if not wanted.activates:
        return with_reason(decided, f"the {name} does not tell whether the workload is in use")
    if demand.value is None:
        reason = f"the {name} is not known ({demand.trouble})"
        if not wanted.wakes and decided.has_no_pods:
            reason = f"{reason}, and cannot wake a workload without pods"
        policy = f" by demandOnEmpty {wanted.on_empty}"
        return _with_unknown_signal(decided, reason, wanted.on_empty, policy)
    level = f"demandActivationThreshold {wanted.activation_threshold:g}"
    if demand.value > wanted.activation_threshold:
        reason = f"{name} {demand.value:.6g} is above {level}"
        return _active(decided, reason, is_held=not spec.is_by_demand)
    return with_reason(decided, f"{name} {demand.value:.6g} is not above {level}")


def apply_demand(spec: TriggerSpec, decided: Decision, demand: Demand) -> Decision:
    """Return a decision after the demand of the trigger: what it activates, then what it scales."""
    decided = activate_by_demand(spec, decided, demand)
    return scale_by_demand(spec, decided, demand) if spec.is_by_demand else decided


def scale_by_demand(spec: TriggerSpec, decided: Decision, demand: Demand) -> Decision:
    """Return a decision with the demand as its number.

    While not all pods are seen, or for a while after a gap, servers may be missing in it: it is a
    lower bound then, which may raise and never lower. That no exporter shows GPUs of servers that
    are all Ready is no such reason.
    """
    number, replicas = demand.value, decided.replicas
    if number is None:
        is_refused = spec.on_unknown is OnUnknown.ERROR and not decided.activated
        trouble = "" if demand.trouble in decided.reason else f" ({demand.trouble})"
        answer = "an error by onUnknown error" if is_refused else "hold"
        reason = f"without the demand{trouble} no number of replicas is known: {answer}"
        unknown = replace(decided, value=None, refused=is_refused, average=None)
        return _with_number_reason(unknown, reason)
    average = number / replicas if replicas else None
    needs = reasons.wanted(spec, replicas, number)
    reason = f"demand {reasons.rounded(number)} {needs} at demandThreshold {spec.threshold:g}"
    are_seen = decided.shows_no_gpu or decided.state not in {State.UNKNOWN, State.PARTIAL}
    is_bound = demand.is_least or not are_seen
    if is_bound and number <= _on_target(decided, spec.threshold):
        reason = f"{reason}; held: {AFTER_GAP if are_seen else 'not all pods are seen'}"
        number = None
    answered = replace(decided, value=number, refused=False, average=average)
    return _with_number_reason(answered, reason)


def demand_for_hpa(spec: TriggerSpec, decided: Decision | None, demand: Demand) -> Demand:
    """Return the demand as the HPA gets it beside the load; without a value it holds.

    Just after a gap it may raise or keep the replicas of the last decision; None has no count.
    """
    is_held = is_held_after_gap(spec, decided, demand)
    return replace(demand, value=None, trouble=AFTER_GAP) if is_held else demand


def is_held_after_gap(spec: TriggerSpec, decided: Decision | None, demand: Demand) -> bool:
    """Tell whether the HPA gets no value of a known demand: just after a gap it may not lower."""
    threshold = None if spec.demand is None else spec.demand.threshold
    if demand.value is None or threshold is None or not demand.is_least:
        return False
    return decided is None or demand.value < _on_target(decided, threshold)


def with_reason(decided: Decision, reason: str) -> Decision:
    return replace(decided, reason=f"{decided.reason}; {reason}")


def _on_target(decided: Decision, threshold: float) -> float:
    """Return the demand with which its replicas are on target; infinite: they are not counted.

    Of an unknown load only the owner's count says how many. Just after zero that may still be 0;
    the HPA then has its minimum, below which it does not go.
    """
    if decided.wanted is not None:
        return max(1, decided.wanted) * threshold
    replicas = decided.expected + decided.starting
    is_counted = decided.state is not State.UNKNOWN and replicas > 0
    return replicas * threshold if is_counted else math.inf


def _with_number_reason(decided: Decision, reason: str) -> Decision:
    """Return a decision with a reason by the demand: the first one where no GPU is seen."""
    if decided.is_unread and not decided.state.is_gone:
        return replace(decided, reason=f"{reason}; {decided.reason}")
    return with_reason(decided, reason)


def _active(decided: Decision, reason: str, *, is_held: bool) -> Decision:
    """Say active; hold an unknown load despite `onUnknown`: a workload in use is not at zero.

    Neither is one with no replicas by a count that may be older than its first pod.
    """
    answer = replace(decided, active=True, activated=True)
    if decided.state in {State.UNKNOWN, State.EMPTY}:
        answer = replace(answer, value=None, refused=False)
        reason = f"but {reason}: {'hold, and active' if is_held else 'active'}"
    return with_reason(answer, reason)


def _with_unknown_signal(
    decided: Decision, reason: str, on_empty: OnEmpty, policy: str = ""
) -> Decision:
    """Handle an unknown signal: it blocks the last step to zero, and does not wake the workload.

    If the load is unknown as well, the answer to that stays.
    """
    if decided.active is not False or decided.is_zero_by_choice:
        return with_reason(decided, reason)
    if not decided.has_no_pods:
        return with_reason(replace(decided, active=True), f"{reason}: not idle")
    if on_empty is OnEmpty.ERROR:
        return with_reason(replace(decided, active=None), f"{reason}: an error{policy}")
    active = on_empty is OnEmpty.ACTIVE
    return with_reason(replace(decided, active=active), f"{reason}: {on_empty}{policy}")
