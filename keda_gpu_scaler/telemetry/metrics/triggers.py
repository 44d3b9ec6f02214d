"""The metrics of each trigger that KEDA asked about recently.

A trigger is identified by its ScaledObject and its metric's name. Two triggers with both in common
share their series, which show the one decided last.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from keda_gpu_scaler.decision.decision import State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics import table
from keda_gpu_scaler.telemetry.metrics.expiring import Expiring, gauge

LIMIT = 10_000
"""Far above any cluster's number of triggers; it bounds the size of an answer to /metrics."""

_Key = tuple[str, str, str]


class _Decided(NamedTuple):
    fact: facts.Evaluated
    at: float
    """The time on this process's clock."""


class Triggers(Collector):
    """The last decision and demand of each trigger."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._decided: Expiring[_Key, _Decided] = Expiring(LIMIT, clock)
        self._demands: Expiring[_Key, Demand] = Expiring(LIMIT, clock)

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
        yield gauge(table.DECISION_AGE, [(labels, now - each.at) for labels, each in known])
        yield gauge(table.DEMAND, [(labels, each.value) for labels, each in self._demands.items()])
        yield _choice(table.STATE, State, decided, lambda fact: fact.decision.state)
        yield _choice(
            table.TRIGGER_EVIDENCE, EvidenceSource, decided, lambda fact: fact.decision.evidence
        )


def _choice(
    metric: table.Metric,
    words: Iterable[StrEnum],
    decided: Iterable[tuple[_Key, facts.Evaluated]],
    read: Callable[[facts.Evaluated], StrEnum | None],
) -> GaugeMetricFamily:
    """Return a family with 1 for the chosen word and 0 for the others; no samples without one."""
    family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for labels, fact in decided:
        chosen = read(fact)
        for word in words if chosen is not None else ():
            family.add_metric((*labels, word), float(word is chosen))
    return family


_GAUGES: tuple[tuple[table.Metric, Callable[[facts.Evaluated], float | None]], ...] = (
    (table.VALUE, lambda fact: fact.decision.value),
    (table.AVERAGE, lambda fact: fact.decision.average),
    (table.THRESHOLD, lambda fact: fact.spec.threshold),
    (table.ACTIVE, lambda fact: fact.decision.active),
    (table.EXPECTED, lambda fact: fact.decision.expected),
    (table.MEASURED, lambda fact: fact.decision.measured),
    (table.REPORTING, lambda fact: fact.decision.reporting_pods),
    (table.IGNORED, lambda fact: len(fact.decision.ignored)),
    (table.UNSEEN, lambda fact: len(fact.decision.unseen)),
)
