"""Spec and decision → the messages of KEDA's contract. Pure: no clock, no I/O, no log.

KEDA 2.17 and later read the float fields where they are above 0, older ones know only the integers:
both are always set, so that every version scales on the same number.
"""

import math

from keda_gpu_scaler import decision, errors, spec
from keda_gpu_scaler.pb import externalscaler_pb2 as pb

# KEDA and the HPA count thousandths in a signed 64-bit integer, which ends at 9.2e18.
LARGEST_VALUE = 9e15
# The HPA itself ignores a deviation of 10 %; half of that is not worth a word.
_UNNOTICED_ROUNDING = 0.05


def metric_spec(trigger_spec: spec.TriggerSpec) -> pb.GetMetricSpecResponse:
    """Say under which name and against which target the trigger is measured."""
    threshold = _countable(trigger_spec.threshold)
    metric = pb.MetricSpec(
        metricName=trigger_spec.metric_name,
        targetSize=_whole_target(threshold),
        targetSizeFloat=threshold,
    )
    return pb.GetMetricSpecResponse(metricSpecs=[metric])


def rounding_warning(threshold: float) -> str | None:
    """Say so where a KEDA that reads only integers would use a noticeably different target."""
    target = _whole_target(threshold)
    if abs(target - threshold) <= _UNNOTICED_ROUNDING * threshold:
        return None
    return f"KEDA 2.16 and older read whole targets only: they use {target}, not {threshold:g}"


def metric_value(metric_name: str, decided: decision.Decision) -> pb.GetMetricsResponse:
    """Answer with exactly one value, or with none to hold the replicas.

    Args:
        metric_name: the name the caller asked for, which the answer repeats.
        decided: what was decided.

    Raises:
        errors.UnknownLoadError: the load is unknown and the trigger wants an error then.
    """
    if decided.refused:
        raise errors.UnknownLoadError(decided.reason)
    if decided.value is None:
        return pb.GetMetricsResponse()
    value = _countable(decided.value)
    metric = pb.MetricValue(
        metricName=metric_name, metricValue=math.ceil(value), metricValueFloat=value
    )
    return pb.GetMetricsResponse(metricValues=[metric])


def activity(decided: decision.Decision, *, has_replicas: bool) -> pb.IsActiveResponse:
    """Answer whether the workload is active.

    Args:
        decided: what was decided.
        has_replicas: the workload is known to have some. When nobody knows more, it is active: an
            error could cost it its replicas, and waking it costs nothing.

    Raises:
        errors.UnknownLoadError: nobody knows, or the trigger wants an error then.
    """
    if decided.active is None and (decided.refused or not has_replicas):
        raise errors.UnknownLoadError(decided.reason)
    return pb.IsActiveResponse(result=decided.active is not False)


def _whole_target(threshold: float) -> int:
    # A target of 0 would be refused by the API server and leave the workload without an HPA.
    return max(1, round(threshold))


def _countable(value: float) -> float:
    """Return the value, unless KEDA would make another number of it.

    Negative values have scaled workloads to their maximum, NaN and infinity to zero.
    """
    if not 0 <= value <= LARGEST_VALUE:
        raise ValueError(f"{value} is not a number that KEDA can count with")
    return value
