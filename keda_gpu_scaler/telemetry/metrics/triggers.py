"""The metrics of each trigger that KEDA asked about recently.

A trigger is identified by its ScaledObject and its metric's name. Two triggers with both in common
share their series, which show the one decided last.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics import table
from keda_gpu_scaler.telemetry.metrics.expiring import Expiring, gauge

LIMIT = 10_000
"""Far above any cluster's number of triggers; it bounds the size of an answer to /metrics."""
PART = 50
"""Triggers in one part of a family: at most three milliseconds of work."""

_Key = tuple[str, str, str]


class _Decided(NamedTuple):
    """What is shown of a decision; a trigger with long texts does not stay for its sake."""

    decision: Decision
    threshold: float
    recommended: int | None
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
        self._decided.put(
            (namespace, name, fact.spec.metric_name),
            _Decided(fact.decision, fact.spec.threshold, fact.recommended, self._clock()),
        )

    def demand_known(self, fact: facts.DemandKnown) -> None:
        """Show this demand from now on."""
        namespace, name = fact.scaled_object
        self._demands.put((namespace, name, fact.spec.metric_name), fact.demand)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the families; one of many triggers comes in parts, one after the other."""
        now, decided, demands = self._clock(), self._decided.items(), self._demands.items()
        left_out = table.TRIGGERS_LEFT_OUT
        yield GaugeMetricFamily(left_out.name, left_out.meaning, value=self._decided.left_out())
        for metric, read in _GAUGES:
            for part in _parts(decided):
                yield gauge(metric, [(labels, read(each)) for labels, each in part])
        for part in _parts(decided):
            yield gauge(table.DECISION_AGE, [(labels, now - each.at) for labels, each in part])
        for known in _parts(demands):
            yield gauge(table.DEMAND, [(labels, demand.value) for labels, demand in known])
        for part in _parts(decided):
            yield _choice(table.STATE, State, part, lambda each: each.decision.state)
        for part in _parts(decided):
            yield _choice(
                table.TRIGGER_EVIDENCE, EvidenceSource, part, lambda each: each.decision.evidence
            )


_T = TypeVar("_T")


def _parts(samples: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Yield one part at least: a family without samples has its name and meaning nevertheless."""
    for begin in range(0, max(1, len(samples)), PART):
        yield samples[begin : begin + PART]


def _choice(
    metric: table.Metric,
    words: Iterable[StrEnum],
    decided: Iterable[tuple[_Key, _Decided]],
    read: Callable[[_Decided], StrEnum | None],
) -> GaugeMetricFamily:
    """Return a family with 1 for the chosen word and 0 for the others; no samples without one."""
    family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for labels, each in decided:
        chosen = read(each)
        for word in words if chosen is not None else ():
            family.add_metric((*labels, word), float(word is chosen))
    return family


_GAUGES: tuple[tuple[table.Metric, Callable[[_Decided], float | None]], ...] = (
    (table.VALUE, lambda each: each.decision.value),
    (table.AVERAGE, lambda each: each.decision.average),
    (table.THRESHOLD, lambda each: each.threshold),
    (table.ACTIVE, lambda each: each.decision.active),
    (table.RECOMMENDED, lambda each: each.recommended),
    (table.EXPECTED, lambda each: each.decision.expected),
    (table.MEASURED, lambda each: each.decision.measured),
    (table.REPORTING, lambda each: each.decision.reporting_pods),
    (table.IGNORED, lambda each: len(each.decision.ignored)),
    (table.UNSEEN, lambda each: len(each.decision.unseen)),
)
