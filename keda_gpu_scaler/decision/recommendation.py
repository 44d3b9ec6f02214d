"""A decision → the replicas that it makes the HPA and KEDA ask for, as far as it is known here.

Pure. Minimum, maximum, stabilization, policies and KEDA's cooldown are not known, and come after
it. Unknown is never zero: where the load is unknown, or zero rests on a demand that is not known,
there is no recommendation.
"""

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.spec.spec import DEMAND_METRIC, Demand, TriggerSpec


def metrics(spec: TriggerSpec, decided: Decision, demand: Demand | None) -> dict[str, rules.Metric]:
    """Return what the HPA is told, by the names of the metrics.

    The trigger's aggregation says how the HPA has to read the value. A demand of None is unknown.
    """
    is_divided = spec.aggregation.is_for_all
    kind = rules.MetricType.AVERAGE_VALUE if is_divided else rules.MetricType.VALUE
    value = None if decided.refused else decided.value
    metrics_by_name = {
        spec.metric_name: rules.Metric(value=value, target=spec.threshold, metric_type=kind),
    }
    second = None if spec.demand is None or spec.is_by_demand else spec.demand.threshold
    if second is not None:
        demanded = None if demand is None else demand.value
        metrics_by_name[DEMAND_METRIC] = rules.Metric(value=demanded, target=second)
    return metrics_by_name


def replicas(decided: Decision) -> int:
    """Return the replicas by the owner's own count, else those that should report."""
    return decided.expected if decided.wanted is None else decided.wanted


def recommended(spec: TriggerSpec, decided: Decision, demand: Demand | None) -> int | None:
    """Return the replicas that a decision asks for at those that there are; None: not known.

    Zero is what an inactive trigger asks for, and one what wakes a workload; the HPA goes on from
    there. Where the HPA would hold the replicas there is no recommendation. `decided` is with all
    signals. A demand of None is unknown.
    """
    raises = spec.is_by_demand and decided.value is not None
    if (decided.state is State.UNKNOWN and not raises) or decided.active is None:
        return None
    if not decided.active:
        is_demand_known = spec.demand is None or (demand is not None and demand.value is not None)
        return 0 if is_demand_known else None
    if spec.for_formula:
        return None  # the HPA gets the value of a formula
    current = replicas(decided)
    hpa_metrics = metrics(spec, decided, demand).values()
    step = rules.recommend(list(hpa_metrics), rules.Scale.steady(current))
    if step is not None:
        return max(1, step.replicas)
    return 1 if decided.state.is_gone and not current else None
