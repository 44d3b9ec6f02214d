"""A decision in one line for people, with the number of replicas that it asks the HPA for.

Pure. The history, metrics, lists and records show the line. Minimum, maximum, stabilization,
policies and KEDA's cooldown come later and are not known here. Unknown is never zero: if the load
is unknown, or if zero depends on an unknown demand, no number of replicas is recommended.
"""

from dataclasses import dataclass

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.decision import activation
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.spec.spec import DEMAND_METRIC, Demand, ScaledObject, TriggerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What was answered about one trigger; field names are those of its JSON."""

    scaled_object: str
    """namespace/name"""
    workload: str
    metric_name: str
    answered_seconds_ago: float = 0.0
    """0 in a record, which is decided when it is asked for."""
    state: str
    value: float | None
    """What GetMetrics answers; None: nothing, the HPA holds the replicas."""
    active: bool | None
    """What IsActive answers; None: an error, as it is not known."""
    active_by: str | None
    """The signal that says active; None: none does. One that is active all the same is so because
    nothing shows that it is idle."""
    average: float | None
    """The mean load per measured replica, which `threshold` is the target of."""
    threshold: float
    unit: str
    """Of `value`, `average` and `threshold`."""
    replicas: int
    """The replicas that should report."""
    measured: int
    """How many of them have a known load."""
    never_seen: bool
    """No exporter shows a pod of it, and one should have by now; or no workload has its name."""
    unschedulable: int
    """The replicas with a pod for which the scheduler finds no node, as far as that is known."""
    unschedulable_since: float | None
    """Since when the first of them is; None: there is none."""
    recommended: int | None
    """The replicas that this asks for at those that there are: zero while it is inactive, else the
    most that a metric asks for, as the HPA takes them together, and before its minimum, maximum,
    stabilization and policies. None: not known, or held."""
    reason: str
    source_name: str = ""
    """In facts: where each namespace has a source of its own, with the namespace."""

    @property
    def trigger(self) -> tuple[str, str]:
        """Which of the ScaledObject's triggers it is about: the metric's name and the workload.

        Triggers of several workloads mostly have the same metric's name.
        """
        return self.metric_name, self.workload


def summarized(  # noqa: PLR0913, PLR0917 - what a line shows
    scaled_object: ScaledObject,
    spec: TriggerSpec,
    decided: Decision,
    recommended: int | None = None,
    active_by: str | None = None,
    source_name: str = "",
) -> Summary:
    return Summary(
        scaled_object=str(scaled_object),
        workload=spec.workload,
        metric_name=spec.metric_name,
        state=decided.state,
        value=decided.value,
        active=decided.active,
        active_by=active_by,
        average=decided.average,
        threshold=spec.threshold,
        unit=spec.unit,
        replicas=decided.expected,
        measured=decided.measured,
        never_seen=decided.never_seen,
        unschedulable=decided.unschedulable,
        unschedulable_since=decided.unschedulable_since,
        recommended=recommended,
        reason=decided.reason,
        source_name=source_name or spec.source,
    )


def hpa_metrics(
    spec: TriggerSpec, decided: Decision, demand: Demand | None
) -> dict[str, rules.Metric]:
    """Return the trigger's metrics in the HPA, by name, each with its value and target.

    The trigger's aggregation says how the HPA reads the value. A demand of None is unknown; a lower
    bound stays in.
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


def recommended_replicas(spec: TriggerSpec, decided: Decision, demand: Demand | None) -> int | None:
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
    if demand is not None and decided.replicas:  # without one the HPA does not ask
        demand = activation.demand_for_hpa(spec, decided, demand)
    metrics = list(hpa_metrics(spec, decided, demand).values())
    step = rules.recommend(metrics, rules.Scale.steady(decided.replicas))
    if step is not None:
        return max(1, step.replicas)
    return 1 if decided.state.is_gone and not decided.replicas else None
