"""What the demand makes of a decision, and the number of a trigger without threshold. Pure."""

from dataclasses import replace

from keda_gpu_scaler.decision import activation, reasons, recommendation
from keda_gpu_scaler.decision.activation import with_reason
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.spec.spec import Demand, OnUnknown, TriggerSpec


def answered(spec: TriggerSpec, decided: Decision, demand: Demand) -> Decision:
    """Return a decision after the demand of the trigger: what it activates, then what it scales."""
    decided = activation.with_demand(spec, decided, demand)
    return scaled(spec, decided, demand) if spec.is_by_demand else decided


def scaled(spec: TriggerSpec, decided: Decision, demand: Demand) -> Decision:
    """Return a decision with the demand as its number.

    While not all pods are seen, or for a while after a gap, servers may be missing in it: it is a
    lower bound then, which may raise and never lower. That no exporter shows GPUs of servers that
    are all Ready is no such reason. Of an unknown load only the owner's count says how many
    replicas it must not lower.
    """
    number, replicas = demand.value, recommendation.replicas(decided)
    if number is None:
        is_refused = spec.on_unknown is OnUnknown.ERROR and not decided.activated
        trouble = "" if demand.trouble in decided.reason else f" ({demand.trouble})"
        answer = "an error by onUnknown error" if is_refused else "hold"
        reason = f"without the demand{trouble} no number of replicas is known: {answer}"
        return _with_demand(replace(decided, value=None, refused=is_refused, average=None), reason)
    average = number / replicas if replicas else None
    needs = reasons.wanted(spec, replicas, number)
    reason = f"demand {reasons.rounded(number)} {needs} at demandThreshold {spec.threshold:g}"
    are_seen = decided.shows_no_gpu or decided.state not in {State.UNKNOWN, State.PARTIAL}
    is_bound = demand.is_least or not are_seen
    is_counted = decided.wanted is not None or decided.state is not State.UNKNOWN
    if is_bound and not (is_counted and 0 < replicas * spec.threshold < number):
        why = "servers may be missing just after a gap" if are_seen else "not all pods are seen"
        reason = f"{reason}; held: {why}"
        number = None
    answered = replace(decided, value=number, refused=False, average=average)
    return _with_demand(answered, reason)


def _with_demand(decided: Decision, reason: str) -> Decision:
    """Return a decision with a reason by the demand: the first one where no GPU is seen."""
    if decided.is_unread and not decided.state.is_gone:
        return replace(decided, reason=f"{reason}; {decided.reason}")
    return with_reason(decided, reason)
