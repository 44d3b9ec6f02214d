"""The metrics of each trigger that KEDA asked about recently.

A trigger is identified by its ScaledObject and its metric's name. Two triggers with both in common
share their series, which show the one decided last.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.spec.retention import TRIGGERS
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics.recent import Recent, gauge, one_of

_Key = tuple[str, str, str]
_LABELS = ("namespace", "scaled_object", "metric")


class _Decided(NamedTuple):
    """What is shown of a decision; a trigger with long texts does not stay for its sake."""

    decision: Decision
    threshold: float
    recommended: int | None
    at: float
    """The time on this process's clock."""


class _Gauge(NamedTuple):
    name: str
    meaning: str
    read: Callable[[_Decided], float | None]
    """Returns the value of a trigger; None: it has no sample."""


class Triggers(Collector):
    """The last decision and demand of each trigger."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._decided: Recent[_Key, _Decided] = Recent(TRIGGERS, clock)
        self._demands: Recent[_Key, Demand] = Recent(TRIGGERS, clock)

    def evaluated(self, fact: facts.Evaluated) -> None:
        """Show this decision from now on."""
        decided = _Decided(fact.decision, fact.spec.threshold, fact.recommended, self._clock())
        self._decided.put((*fact.scaled_object, fact.spec.metric_name), decided)

    def demand_known(self, fact: facts.DemandKnown) -> None:
        """Show this demand from now on."""
        self._demands.put((*fact.scaled_object, fact.spec.metric_name), fact.demand)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield one family per metric."""
        now, triggers = self._clock(), self._decided.items()
        for name, meaning, read in _GAUGES:
            yield gauge(name, meaning, _LABELS, ((key, read(decided)) for key, decided in triggers))
        yield gauge(
            "keda_gpu_scaler_trigger_decision_age_seconds",
            "Time since this replica was last asked about the trigger.",
            _LABELS,
            ((key, now - decided.at) for key, decided in triggers),
        )
        yield gauge(
            "keda_gpu_scaler_trigger_demand",
            "What demandQuery gave when it was last asked; absent while it is unknown.",
            _LABELS,
            ((key, demand.value) for key, demand in self._demands.items()),
        )
        yield gauge(
            "keda_gpu_scaler_trigger_state",
            "1 for the state the trigger is in, 0 for the others.",
            (*_LABELS, "state"),
            one_of(State, ((key, decided.decision.state) for key, decided in triggers)),
        )
        yield gauge(
            "keda_gpu_scaler_trigger_evidence",
            "1 for what the last decision rests on, 0 for the others: kubernetes, "
            "kube-state-metrics or exporters.",
            (*_LABELS, "evidence"),
            one_of(EvidenceSource, ((key, decided.decision.evidence) for key, decided in triggers)),
        )


_GAUGES = (
    _Gauge(
        "keda_gpu_scaler_trigger_value",
        "What GetMetrics returns; absent while the number of replicas is held.",
        lambda decided: decided.decision.value,
    ),
    _Gauge(
        "keda_gpu_scaler_trigger_average",
        "Load per replica, in the signal's unit; absent while it is unknown.",
        lambda decided: decided.decision.average,
    ),
    _Gauge(
        "keda_gpu_scaler_trigger_threshold",
        "The target per replica.",
        lambda decided: decided.threshold,
    ),
    _Gauge(
        "keda_gpu_scaler_trigger_active",
        "1 while IsActive says active, 0 while not; absent while it fails.",
        lambda decided: decided.decision.active,
    ),
    _Gauge(
        "keda_gpu_scaler_recommended_replicas",
        "Replicas that the last answer asks for at those that there are, before minimum, maximum, "
        "stabilization and policies: 0 while the trigger is inactive; absent while the load is "
        "unknown or the replicas are held.",
        lambda decided: decided.recommended,
    ),
    _Gauge(
        "keda_gpu_scaler_trigger_expected_replicas",
        "Replicas that should report.",
        lambda decided: decided.decision.expected,
    ),
    _Gauge(
        "keda_gpu_scaler_trigger_measured_replicas",
        "Replicas whose load is known.",
        lambda decided: decided.decision.measured,
    ),
    _Gauge(
        "keda_gpu_scaler_trigger_reporting_pods",
        "Pods that report right now.",
        lambda decided: decided.decision.reporting_pods,
    ),
    _Gauge(
        "keda_gpu_scaler_trigger_ignored_pods",
        "Ready pods that ask for no GPU and never showed one, while others of the workload did.",
        lambda decided: len(decided.decision.ignored),
    ),
)
