"""Spec and decision → the messages of KEDA's contract. Pure.

KEDA 2.17 and later read the float fields if they are above 0. Older versions know only the
integers. Both are always set, so that every version scales on the same number.

Since 2.20, and still in 2.21, KEDA takes a poll that fails after a request of the HPA's has failed
for "inactive, no error": an error about a busy workload can then scale it to zero. The HPA asks
only about workloads with replicas, and KEDA passes on its deadline; polls have none. For workloads
that it asked about the answer is "active" instead of an error, which costs nothing. A workload
without replicas would be scaled up by that answer.
"""

import math
from functools import lru_cache

from keda_gpu_scaler import errors
from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.spec.spec import DEMAND_METRIC, Demand, OnUnknown, TriggerSpec, is_countable

# The HPA itself ignores a deviation of 10 %; half of that needs no warning.
_UNNOTICED_ROUNDING = 0.05


def targets(trigger_spec: TriggerSpec) -> dict[str, float]:
    """Return the target of each metric of a trigger, by the metric's name.

    Where there are two, the HPA computes the replicas for each and takes the larger number.
    """
    by_name = {trigger_spec.metric_name: trigger_spec.threshold}
    if trigger_spec.demand is not None and trigger_spec.demand.threshold is not None:
        by_name[DEMAND_METRIC] = trigger_spec.demand.threshold
    return by_name


@lru_cache(maxsize=256)
def metric_spec(*metrics: tuple[str, float]) -> pb.GetMetricSpecResponse:
    """Return an answer, the same for all triggers with these targets: thousands may keep it."""
    answer = pb.GetMetricSpecResponse()
    for name, target in metrics:
        threshold = _countable(target)
        answer.metricSpecs.add(
            metricName=name, targetSize=_whole_target(threshold), targetSizeFloat=threshold
        )
    return answer


def rounding_warning(name: str, threshold: float) -> str | None:
    """Return a warning if a KEDA that reads only integers would use a clearly different target."""
    target = _whole_target(threshold)
    if abs(target - threshold) <= _UNNOTICED_ROUNDING * threshold:
        return None
    return (
        f"KEDA 2.16 and older read whole targets only: for {name} they use {target}, "
        f"not {threshold:g}"
    )


def metric_value(metric_name: str, decision: Decision) -> pb.GetMetricsResponse:
    """Answer with one value, with none to hold the replicas, or raise UnknownLoadError."""
    if decision.refused:
        raise errors.UnknownLoadError(decision.reason)
    return _values(metric_name, decision.value)


def formula_value(
    metric_name: str, decision: Decision, threshold: float, *, has_replicas: bool
) -> pb.GetMetricsResponse:
    """Answer a poll with a number that says what `activity` says, or raise UnknownLoadError.

    With a formula KEDA judges activity by its value alone. A hold would give it none, which KEDA
    takes for inactive. If the workload is active, the number is at least one replica's, so that an
    `activationTarget` below that never calls it idle. The HPA never gets this number: during a
    hold it would scale by it.
    """
    if not activity(decision, has_replicas=has_replicas).result:
        return _values(metric_name, 0.0)
    return _values(metric_name, max(decision.value or 0.0, threshold))


def demand_value(metric_name: str, demand: Demand, on_unknown: OnUnknown) -> pb.GetMetricsResponse:
    """Answer with the demand, with none to hold the replicas, or raise UnknownLoadError.

    `on_unknown` is the trigger's answer to an unknown load; it never makes a demand 0.
    """
    if demand.value is None and on_unknown is OnUnknown.ERROR:
        raise errors.UnknownLoadError(f"{demand.trouble}: an error by onUnknown error")
    return _values(metric_name, demand.value)


def _values(metric_name: str, number: float | None) -> pb.GetMetricsResponse:
    if number is None:
        return pb.GetMetricsResponse()
    value = _countable(number)
    metric = pb.MetricValue(
        metricName=metric_name, metricValue=math.ceil(value), metricValueFloat=value
    )
    return pb.GetMetricsResponse(metricValues=[metric])


def depends_on_replicas(decision: Decision) -> bool:
    """Tell whether `activity` depends on whether the workload has replicas: nothing else is known.

    If it is known to have no pods, "active" would scale it up.
    """
    return decision.active is None and not decision.refused and not decision.state.is_gone


def activity(decision: Decision, *, has_replicas: bool) -> pb.IsActiveResponse:
    """Answer whether the workload is active, or raise UnknownLoadError.

    With `has_replicas` the HPA asked recently, so the workload has replicas or had them until just
    now. If nothing more is known, it counts as active: an error could cost it its replicas.
    """
    may_assume_active = has_replicas and depends_on_replicas(decision)
    if decision.active is None and not may_assume_active:
        raise errors.UnknownLoadError(decision.reason)
    return pb.IsActiveResponse(result=decision.active is not False)


def _whole_target(threshold: float) -> int:
    # The API server refuses a target of 0, and the workload would have no HPA.
    return max(1, round(threshold))


def _countable(value: float) -> float:
    """Return the value, or raise ValueError if KEDA would turn it into another number.

    Negative values have scaled workloads to their maximum, NaN and infinity to zero.
    """
    if not is_countable(value):
        raise ValueError(f"{value} is not a number that KEDA can count with")
    return value
