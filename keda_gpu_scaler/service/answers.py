"""Spec and decision → the messages of KEDA's contract; and which workloads have replicas. Pure.

KEDA 2.17 and later read the float fields where they are above 0, older ones know only the integers:
both are always set, so that every version scales on the same number.

Since 2.20, KEDA takes a poll that follows a failed one for "inactive, no error" when a request of
the HPA's meets it: an error about a busy workload can then scale it to zero. The HPA asks only
about workloads that have replicas; for these, "active" is answered in place of an error and costs
nothing. For one without replicas it would wake the workload.
"""

import math
import time
from collections.abc import Callable

from cachetools import TTLCache

from keda_gpu_scaler import errors
from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.retention import TRIGGERS
from keda_gpu_scaler.spec.demand import METRIC_NAME, Demand, is_countable
from keda_gpu_scaler.spec.spec import OnUnknown, ScaledObject, TriggerSpec

# The HPA itself ignores a deviation of 10 %; half of that is not worth a word.
_UNNOTICED_ROUNDING = 0.05


def metric_spec(trigger_spec: TriggerSpec) -> pb.GetMetricSpecResponse:
    """Say under which names and against which targets the trigger is measured."""
    specs = [_metric_spec(name, target) for name, target in targets(trigger_spec).items()]
    return pb.GetMetricSpecResponse(metricSpecs=specs)


def targets(trigger_spec: TriggerSpec) -> dict[str, float]:
    """Return the target of each metric of a trigger, by the metric's name.

    Where there are two, the HPA computes the replicas for each and takes the larger number.
    """
    found = {trigger_spec.metric_name: trigger_spec.threshold}
    if trigger_spec.demand is not None and trigger_spec.demand.threshold is not None:
        found[METRIC_NAME] = trigger_spec.demand.threshold
    return found


def _metric_spec(name: str, target: float) -> pb.MetricSpec:
    threshold = _countable(target)
    return pb.MetricSpec(
        metricName=name, targetSize=_whole_target(threshold), targetSizeFloat=threshold
    )


def rounding_warning(name: str, threshold: float) -> str | None:
    """Say so where a KEDA that reads only integers would use a noticeably different target.

    Args:
        name: the metric's.
        threshold: its target.
    """
    target = _whole_target(threshold)
    if abs(target - threshold) <= _UNNOTICED_ROUNDING * threshold:
        return None
    return (
        f"KEDA 2.16 and older read whole targets only: for {name} they use {target}, "
        f"not {threshold:g}"
    )


def metric_value(metric_name: str, decided: Decision) -> pb.GetMetricsResponse:
    """Answer with exactly one value, or with none to hold the replicas.

    Args:
        metric_name: the name the caller asked for, which the answer repeats.
        decided: what was decided.

    Raises:
        errors.UnknownLoadError: the load is unknown and the trigger wants an error then.
    """
    if decided.refused:
        raise errors.UnknownLoadError(decided.reason)
    return _values(metric_name, decided.value)


def demand_value(metric_name: str, demand: Demand, on_unknown: OnUnknown) -> pb.GetMetricsResponse:
    """Answer with the demand, or with none to hold the replicas.

    Args:
        metric_name: the name the caller asked for, which the answer repeats.
        demand: what came of asking.
        on_unknown: what the trigger wants where nobody knows; a demand never becomes 0 by it.

    Raises:
        errors.UnknownLoadError: the demand is unknown and the trigger wants an error then.
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


def activity(decided: Decision, *, has_replicas: bool) -> pb.IsActiveResponse:
    """Answer whether the workload is active.

    Args:
        decided: what was decided.
        has_replicas: the HPA asked lately, so that there are some, or were until just now. Where
            nobody knows more, the workload is active: an error could cost it its replicas. Where it
            is known to have no pods, that would wake it.

    Raises:
        errors.UnknownLoadError: nobody knows, or the trigger wants an error then.
    """
    knows_better = decided.refused or decided.state.is_gone
    if decided.active is None and (knows_better or not has_replicas):
        raise errors.UnknownLoadError(decided.reason)
    return pb.IsActiveResponse(result=decided.active is not False)


def _whole_target(threshold: float) -> int:
    # A target of 0 would be refused by the API server and leave the workload without an HPA.
    return max(1, round(threshold))


def _countable(value: float) -> float:
    """Return the value, unless KEDA would make another number of it.

    Negative values have scaled workloads to their maximum, NaN and infinity to zero.
    """
    if not is_countable(value):
        raise ValueError(f"{value} is not a number that KEDA can count with")
    return value


ASKED_SECONDS = 60.0
"""Four syncs of the HPA at its default of 15 s: it may be late."""


class HpaCallers:
    """The ScaledObjects that the HPA asked about lately."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Know of none.

        Args:
            clock: seconds that never go back.
        """
        self._asked: TTLCache[ScaledObject, bool] = TTLCache(TRIGGERS, ASKED_SECONDS, timer=clock)

    def has_replicas(self, scaled_object: ScaledObject, seconds_left: float | None) -> bool:
        """Tell whether a workload is known to have replicas, from this call and those before.

        Args:
            scaled_object: whom the call is about.
            seconds_left: KEDA passes the HPA's deadline on, and sets none when it polls.
        """
        if seconds_left is not None:
            self._asked[scaled_object] = True
        return scaled_object in self._asked
