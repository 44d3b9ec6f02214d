"""The metrics of each trigger that KEDA asked about recently.

A trigger is identified by its ScaledObject and its metric's name. Two triggers with both in common
share their series, which show the one decided last.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics import lines, table
from keda_gpu_scaler.telemetry.metrics.expiring import Expiring, gauge

LIMIT = 10_000
"""Far above any cluster's number of triggers; it bounds the size of an answer to /metrics."""
PART = 200
"""Triggers in one part of a family: at most a millisecond of work, and ten for an encoder that
changes the names of metrics."""

_Key = tuple[str, str, str]
_LABELS = table.VALUE.labels
"""Those of every gauge of triggers; some have one more."""


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
            _Decided(
                fact.decision,
                fact.spec.threshold,
                fact.recommended,
                self._clock(),
            ),
        )

    def demand_known(self, fact: facts.DemandKnown) -> None:
        """Show this demand from now on."""
        namespace, name = fact.scaled_object
        self._demands.put((namespace, name, fact.spec.metric_name), fact.demand)

    def collect(self) -> Iterable[Metric]:
        """Yield the families; one of many triggers comes in parts, one after the other."""
        now, decided, demands = self._clock(), _parts(self._decided), _parts(self._demands)
        left_out = table.TRIGGERS_LEFT_OUT
        yield GaugeMetricFamily(left_out.name, left_out.meaning, value=self._decided.left_out())
        for metric, read in _GAUGES:
            for part in decided:
                yield part.gauge(metric, read)
        for part in decided:
            yield part.gauge(table.DECISION_AGE, lambda each: now - each.at)
        for known in demands:
            yield known.gauge(table.DEMAND, lambda demand: demand.value)
        for part in decided:
            yield part.choice(table.STATE, State, lambda each: each.decision.state)
        for part in decided:
            yield part.choice(
                table.TRIGGER_EVIDENCE, EvidenceSource, lambda each: each.decision.evidence
            )


_T = TypeVar("_T")


class _Part(Generic[_T]):
    """Some triggers, each with what its samples are read from."""

    def __init__(self, known: Sequence[tuple[_Key, _T]]) -> None:
        self._known = known

    @cached_property
    def _texts(self) -> list[str]:
        """Their labels as text, for the lines of all gauges."""
        return [lines.label_text(_LABELS, key) for key, _ in self._known]

    def gauge(self, metric: table.Metric, read: Callable[[_T], float | None]) -> Metric:
        """Return what is read from each, unless it is None."""
        return lines.LinedGauge(
            metric,
            lambda: lines.numbers(metric, self._texts, (read(each) for _, each in self._known)),
            lambda: gauge(metric, [(key, read(each)) for key, each in self._known]),
        )

    def choice(
        self, metric: table.Metric, words: type[StrEnum], read: Callable[[_T], StrEnum | None]
    ) -> Metric:
        """Return 1 for the chosen word and 0 for the others; no samples without one."""
        return lines.LinedGauge(
            metric,
            lambda: lines.choices(
                metric, tuple(words), self._texts, (read(each) for _, each in self._known)
            ),
            lambda: gauge(
                metric,
                [
                    ((*key, word), word is chosen)
                    for key, each in self._known
                    if (chosen := read(each)) is not None
                    for word in words
                ],
            ),
        )


def _parts(held: Expiring[_Key, _T]) -> list[_Part[_T]]:
    """Return one part at least: a family without samples has its name and meaning nevertheless."""
    known = held.items()
    return [_Part(known[begin : begin + PART]) for begin in range(0, max(1, len(known)), PART)]


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
