"""Decision → what people are told of it in a line: in the history, metrics, lists, and a record."""

from dataclasses import dataclass

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec


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
