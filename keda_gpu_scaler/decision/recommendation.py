"""A decision → the replicas that it makes the HPA and KEDA ask for, as far as it is known here.

Pure. Minimum, maximum, stabilization, policies and KEDA's cooldown are not known, and come after
it. Unknown is never zero: where the load is unknown, or zero rests on a demand that is not known,
there is no recommendation.
"""

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.spec.demand import METRIC_NAME, Demand
from keda_gpu_scaler.spec.spec import TriggerSpec


def metrics(spec: TriggerSpec, decided: Decision, demand: Demand | None) -> dict[str, rules.Metric]:
    """Return what the HPA is told, by the names of the metrics.

    Args:
        spec: the trigger; its aggregation says how the HPA has to read the value.
        decided: what was decided about it.
        demand: its demand; None: it is not known.
    """
    is_divided = spec.aggregation.is_for_all
    kind = rules.MetricType.AVERAGE_VALUE if is_divided else rules.MetricType.VALUE
    value = None if decided.refused else decided.value
    found = {
        spec.metric_name: rules.Metric(value=value, target=spec.threshold, metric_type=kind),
    }
    if spec.demand is not None and spec.demand.threshold is not None:
        asked = None if demand is None else demand.value
        found[METRIC_NAME] = rules.Metric(value=asked, target=spec.demand.threshold)
    return found


def replicas(decided: Decision) -> int:
    """Return the replicas by the owner's own count, else those that should report."""
    return decided.expected if decided.wanted is None else decided.wanted


def recommended(spec: TriggerSpec, decided: Decision, demand: Demand | None) -> int | None:
    """Return the replicas that a decision asks for at those that there are; None: not known.

    Zero is what an inactive trigger asks for, and one what wakes a workload; the HPA goes on from
    there. Where the HPA would hold the replicas there is no recommendation.

    Args:
        spec: the trigger.
        decided: what was decided about it, with all signals.
        demand: its demand; None: it is not known.
    """
    if decided.state is State.UNKNOWN or decided.active is None:
        return None
    if not decided.active:
        is_told = spec.demand is None or (demand is not None and demand.value is not None)
        return 0 if is_told else None
    there = replicas(decided)
    asked = metrics(spec, decided, demand).values()
    step = rules.recommend(list(asked), rules.Scale.steady(there))
    if step is not None:
        return max(1, step.replicas)
    return 1 if decided.state.is_gone and not there else None
