"""What would give another number of replicas: the nearest value, and the nearest threshold.

Pure. The bounds are found with the HPA's rules (`autoscaling.rules`) by bisection, to a thousandth:
a formula for them would have to repeat where the tolerance ends and how replicas are rounded up.
What is not known gives no number: the answer is then what is missing. Zero, and the way back from
it, are KEDA's part: there the answer is what each signal says.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.decision.pod_state import PodState
from keda_gpu_scaler.record.record import MetricRecord, Record, Says
from keda_gpu_scaler.spec.spec import DEMAND_METRIC, TOO_LARGE
from keda_gpu_scaler.trigger.metadata import REACHABLE_PERCENT

_INACTIVE = (
    "it is inactive: after its cooldownPeriod KEDA goes to zero in one step, if minReplicaCount is "
    "0 and no other trigger is active"
)
_PODS_NAMED = 10
_MILLI = 1000
_AWAITED = frozenset(state.name.lower() for state in PodState if state is not PodState.MEASURED)
"""The states of pods whose load should be known, and is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One change that is enough, unless another metric asks for more."""

    metric: str
    key: str | None
    """The key of the trigger to change; None: the value itself has to change."""
    now: float
    at_least: float | None
    at_most: float | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """What would give a number of replicas by one trigger."""

    scaled_object: str
    """namespace/name"""
    metric_name: str
    wanted: int
    replicas: int
    """The replicas that there are."""
    is_so: bool
    """The trigger asks for it already; gates behind it may hold."""
    reasons: tuple[str, ...]
    """What is not known, what cannot be, and what else decides."""
    ways: tuple[Way, ...]
    """None: no number can be told."""


def why_not(record: Record, wanted: int) -> WhyNot:
    """Return what would give so many replicas: 0 is KEDA's part, and more than 0 the HPA's."""
    replicas = record.metrics[0].replicas if record.metrics else 0
    ways: list[Way] = []
    if wanted == 0 or replicas == 0:
        is_so = record.active is False if wanted == 0 else bool(record.active) and wanted == 1
        reasons = [*_by_keda(record, wanted, replicas)]
    else:
        # The HPA takes the most; a metric without a value holds what there is.
        desired = max(
            _desired(metric, metric.value, metric.target) if _is_usable(metric) else replicas
            for metric in record.metrics
        )
        is_so, reasons = desired == wanted, [*_by_hpa(record, desired, wanted, replicas)]
        if not is_so and (wanted > desired or _is_whole(record, replicas)):
            for metric in _to_change(record, wanted):
                metric_ways = [*_ways(record, metric, wanted)]
                possible = [way for way in metric_ways if _is_possible(record, metric, way)]
                ways += possible
                if len(possible) < len(metric_ways):
                    reasons.append(
                        f"no value of {metric.name} gives {wanted}: each replica would need a "
                        "load above 100 %"
                    )
                elif all(way.key is not None for way in metric_ways):
                    band = _number(100 * metric.tolerance, "%")
                    reasons.append(
                        f"no value of {metric.name} gives {wanted} at {metric.replicas} "
                        f"replicas: within {band} of its target nothing changes"
                    )
    return WhyNot(
        scaled_object=record.scaled_object,
        metric_name=record.metric_name,
        wanted=wanted,
        replicas=replicas,
        is_so=is_so,
        reasons=tuple(reasons),
        ways=tuple(ways),
    )


def _by_keda(record: Record, wanted: int, replicas: int) -> Iterator[str]:
    """Yield what each signal says that matters, with its number and the level to be above."""
    if wanted == 0 and record.active is False:
        yield "it is inactive and has no replicas" if replicas == 0 else _INACTIVE
        return
    if wanted > 0:
        yield (
            "KEDA starts it with 1 replica, or minReplicaCount, if a signal other than its own "
            "GPUs is active; then the HPA adds more"
        )
    yield from _unknown(record)
    for signal in record.activation:
        if signal.says is Says.NOT_SET or (wanted == 0 and signal.says is Says.IDLE):
            continue
        numbers = ""
        if signal.value is not None and signal.threshold is not None:
            unit = record.gpu_unit if signal.signal == "gpus" else ""
            value, level = _number(signal.value, unit), _number(signal.threshold, unit)
            numbers = f": it is {value}, and active above {level}"
        yield f"{signal.signal} is {signal.says}: {signal.reason}{numbers}"


def _by_hpa(record: Record, desired: int, wanted: int, replicas: int) -> Iterator[str]:
    without = [metric for metric in record.metrics if not _is_usable(metric)]
    if record.active is False:
        yield _INACTIVE
    for metric in without:
        is_held = metric.value is None or metric.replicas == 0
        why = (
            "has no value, which holds the replicas"
            if is_held
            else f"gives no number of replicas: {metric.reason}"
        )
        yield f"{metric.name} {why}"
    if desired == wanted:
        yield f"the trigger wants {wanted}"
    elif wanted < desired and not _is_whole(record, replicas):
        if record.measured < replicas:
            known = f"{record.measured} of {replicas} replicas"
            yield f"only the load of {known} is known, so the scaler does not go lower"
        yield from _unknown(record)
    elif without:
        yield from _unknown(record)
    limit = rules.scale_up_limit(replicas)
    if wanted > limit:
        yield f"without other policies the HPA goes from {replicas} to at most {limit} in one step"
    if wanted < desired and len(_to_change(record, wanted)) > 1:
        yield "every metric that wants more must change: the HPA takes the largest number"


def _to_change(record: Record, wanted: int) -> list[MetricRecord]:
    """Return the metrics that ask for more; if none does, those that could ask for so many."""
    usable = [metric for metric in record.metrics if _is_usable(metric)]
    more = [metric for metric in usable if _desired(metric, metric.value, metric.target) > wanted]
    return more or [
        metric for metric in usable if _desired(metric, metric.value, metric.target) < wanted
    ]


def _ways(record: Record, metric: MetricRecord, wanted: int) -> Iterator[Way]:
    is_more = _desired(metric, metric.value, metric.target) < wanted
    value = _bound(lambda value: _desired(metric, value, metric.target), wanted, is_more=is_more)
    if value is not None:
        yield _way(record, metric, None, value, is_least=is_more)
    # The larger the target, the fewer replicas.
    target = _bound(
        lambda target: -_desired(metric, metric.value, target), -wanted, is_more=not is_more
    )
    is_demand = metric.name == DEMAND_METRIC
    is_refused = record.unit == "%" and not is_demand and (target or 0.0) > REACHABLE_PERCENT
    if target is not None and not is_refused:
        key = "demandThreshold" if is_demand else "threshold"
        yield _way(record, metric, key, target, is_least=not is_more)


def _is_possible(record: Record, metric: MetricRecord, way: Way) -> bool:
    """Tell whether a GPU can show so much: 100 % are the most, unless those of a pod are summed."""
    is_summed = any((each.key, each.value) == ("gpuAggregation", "sum") for each in record.settings)
    if way.key is not None or metric.name == DEMAND_METRIC or record.unit != "%" or is_summed:
        return True
    is_average = metric.metric_type == rules.MetricType.VALUE
    return (way.at_least or 0.0) <= 100 * (1 if is_average else metric.replicas)


def _way(
    record: Record, metric: MetricRecord, key: str | None, bound: float, *, is_least: bool
) -> Way:
    unit = "" if metric.name == DEMAND_METRIC else record.unit
    now = (metric.value or 0.0) if key is None else metric.target
    note = ""
    if key is not None:
        note = ", if the value stays"
    elif metric.metric_type == rules.MetricType.AVERAGE_VALUE:
        note = f": {bound / metric.replicas:.6g} {unit}".rstrip() + " for each replica"
    words = "at least" if is_least else "at most"
    return Way(
        metric=metric.name,
        key=key,
        now=now,
        at_least=bound if is_least else None,
        at_most=None if is_least else bound,
        text=f"{key or metric.name} {words} {_number(bound, unit)} (is {_number(now, unit)}){note}",
    )


def _bound(replicas: Callable[[float], int], wanted: int, *, is_more: bool) -> float | None:
    """Return the least number that gives `wanted`, or the largest; None: no number does.

    `replicas` never falls as the number grows, and the number is one of whole thousandths.
    """

    def by_thousandths(thousandths: int) -> int:
        return replicas(thousandths / _MILLI)

    numbers = range(1, _MILLI * int(TOO_LARGE))
    if is_more:
        index = bisect_left(numbers, wanted, key=by_thousandths)
    else:
        index = bisect_right(numbers, wanted, key=by_thousandths) - 1
    is_found = 0 <= index < len(numbers) and by_thousandths(numbers[index]) == wanted
    return numbers[index] / _MILLI if is_found else None


def _desired(metric: MetricRecord, value: float | None, target: float) -> int:
    """Return what the HPA would ask for, which is never less than 1."""
    kind = rules.MetricType(metric.metric_type)
    step = rules.recommend(
        [rules.Metric(value=value, target=target, metric_type=kind)],
        rules.Scale.steady(metric.replicas),
        rules.Tolerances(up=metric.tolerance, down=metric.tolerance),
    )
    return 1 if step is None else max(1, step.replicas)


def _is_usable(metric: MetricRecord) -> bool:
    return metric.value is not None and metric.desired is not None and metric.replicas > 0


def _is_whole(record: Record, replicas: int) -> bool:
    """Tell whether a lower value would be an answer, and not only a lower bound."""
    is_known = all(_is_usable(metric) for metric in record.metrics)
    if record.metric_name == DEMAND_METRIC:  # what is not measured yet takes nothing from it
        return is_known and record.state not in {State.UNKNOWN, State.PARTIAL}
    return is_known and record.state == State.MEASURED and record.measured >= replicas


def _unknown(record: Record) -> Iterator[str]:
    """Yield what is not known of the load, and why."""
    if record.state in {State.UNKNOWN, State.PARTIAL, State.STARTING}:
        yield f"it is {record.state}: {record.reason}"
    if record.source.trouble is not None:
        yield record.source.trouble
    pods = [pod for pod in record.pods if not pod.counts and pod.state in _AWAITED]
    yield from (f"pod {pod.name}: {pod.reason}" for pod in pods[:_PODS_NAMED])
    in_all = sum(count.pods for count in record.pod_counts if count.state in _AWAITED)
    more = max(len(pods), in_all) - _PODS_NAMED
    if more > 0:
        yield f"and {more} more pods"


def _number(value: float, unit: str) -> str:
    return f"{value:.10g} {unit}".rstrip()
