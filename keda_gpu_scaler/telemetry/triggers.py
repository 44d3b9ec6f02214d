"""The metrics of each trigger asked for lately.

A trigger is known by its ScaledObject and its metric's name: two triggers of one ScaledObject that
share both share their series, and the one decided last shows.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from keda_gpu_scaler import facts
from keda_gpu_scaler.decision import State
from keda_gpu_scaler.demand import Demand
from keda_gpu_scaler.evidence import Basis
from keda_gpu_scaler.telemetry import metrics
from keda_gpu_scaler.telemetry.families import gauge
from keda_gpu_scaler.telemetry.lately import Lately

LIMIT = 10_000
"""Far above any cluster's number of triggers, and a bound on what an answer to /metrics can be."""

_Key = tuple[str, str, str]


class _Decided(NamedTuple):
    fact: facts.Evaluated
    at: float
    """On this process's clock."""


class Triggers(Collector):
    """What was decided last for each trigger."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._decided: Lately[_Key, _Decided] = Lately(LIMIT, clock)
        self._demands: Lately[_Key, Demand] = Lately(LIMIT, clock)

    def evaluated(self, fact: facts.Evaluated) -> None:
        """Show this decision from now on."""
        namespace, name = fact.scaled_object
        self._decided.put((namespace, name, fact.spec.metric_name), _Decided(fact, self._clock()))

    def demand_known(self, fact: facts.DemandKnown) -> None:
        """Show this demand from now on."""
        namespace, name = fact.scaled_object
        self._demands.put((namespace, name, fact.spec.metric_name), fact.demand)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield one family per metric."""
        now, known = self._clock(), self._decided.items()
        decided = [(labels, each.fact) for labels, each in known]
        for metric, read in _GAUGES:
            yield gauge(metric, [(labels, read(fact)) for labels, fact in decided])
        yield gauge(metrics.DECISION_AGE, [(labels, now - each.at) for labels, each in known])
        yield gauge(
            metrics.DEMAND, [(labels, each.value) for labels, each in self._demands.items()]
        )
        yield _choice(metrics.STATE, State, decided, lambda fact: fact.decision.state)
        yield _choice(metrics.TRIGGER_EVIDENCE, Basis, decided, lambda fact: fact.decision.evidence)


def _choice(
    metric: metrics.Metric,
    words: Iterable[StrEnum],
    decided: Iterable[tuple[_Key, facts.Evaluated]],
    read: Callable[[facts.Evaluated], StrEnum | None],
) -> GaugeMetricFamily:
    """Return a family with 1 for one of the words and 0 for the others; nothing for none."""
    family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for labels, fact in decided:
        chosen = read(fact)
        for word in words if chosen is not None else ():
            family.add_metric((*labels, word), float(word is chosen))
    return family


_GAUGES: tuple[tuple[metrics.Metric, Callable[[facts.Evaluated], float | None]], ...] = (
    (metrics.VALUE, lambda fact: fact.decision.value),
    (metrics.AVERAGE, lambda fact: fact.decision.average),
    (metrics.THRESHOLD, lambda fact: fact.spec.threshold),
    (metrics.ACTIVE, lambda fact: fact.decision.active),
    (metrics.EXPECTED, lambda fact: fact.decision.expected),
    (metrics.MEASURED, lambda fact: fact.decision.measured),
    (metrics.REPORTING, lambda fact: fact.decision.reporting_pods),
    (metrics.IGNORED, lambda fact: len(fact.decision.ignored)),
)
