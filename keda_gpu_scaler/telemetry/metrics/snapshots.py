"""The metrics of sources and of their snapshots.

The age keeps growing while a source is down and KEDA keeps asking: alert on that.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics import table
from keda_gpu_scaler.telemetry.metrics.expiring import Expiring, gauge

LIMIT = 1_000
"""Combinations of source, signal and profile: a handful, unless a source is per namespace."""

RENEW_SECONDS = 1.0
"""All decisions from one snapshot say the same of it: it is taken from one of them in this time."""
SAME_SECONDS = 0.5
"""Decisions from one snapshot differ by less in its time, by clocks that differ in their rate."""

_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Shown:
    pods: float | None = None
    refused_samples: float | None = None
    born: float | None = None
    """The snapshot's evaluation time, on this process's clock."""
    renewed_at: float = -math.inf
    """When that was last taken from a decision, on the same clock."""

    def is_renewed(self, now: float, born: float | None) -> bool:
        """Tell whether a decision was about the same snapshot just now."""
        if now - self.renewed_at >= RENEW_SECONDS:
            return False
        if born is None or self.born is None:
            return born is self.born
        return abs(born - self.born) < SAME_SECONDS


class Snapshots(Collector):
    """The state of each source and its data."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._shown: Expiring[_Key, _Shown] = Expiring(LIMIT, clock)
        self._up: Expiring[str, bool] = Expiring(LIMIT, clock)
        self._evidence: Expiring[str, EvidenceSource] = Expiring(LIMIT, clock)
        self._lags: Expiring[str, float] = Expiring(LIMIT, clock)
        self._watches: dict[str, bool] = {}

    def taken(self, fact: facts.SnapshotTaken) -> None:
        """Show the counts of this snapshot from now on."""
        key = (fact.source, fact.signal, fact.profile)
        shown = self._shown.get(key) or _Shown()
        counted = replace(shown, pods=fact.pods, refused_samples=fact.refused_samples)
        self._shown.put(key, counted)
        self._up.put(fact.source, True)  # noqa: FBT003 - a value, and no switch

    def evaluated(self, fact: facts.Evaluated) -> None:
        """Take the snapshot's age from the fact: only the source knows its own clock."""
        source = fact.source or fact.spec.source
        key = (source, str(fact.spec.shared_signal), fact.spec.profile)
        shown, now = self._shown.get(key) or _Shown(), self._clock()
        age = fact.snapshot_age_seconds
        born = None if age is None else now - age
        if shown.is_renewed(now, born):
            return
        self._shown.put(key, replace(shown, born=born, renewed_at=now))
        for known in (self._up, self._evidence, self._lags):
            known.mention(source)

    def source_changed(self, fact: facts.SourceChanged | facts.LagChanged) -> None:
        """Show whether the source answers, and how late its samples arrive."""
        if isinstance(fact, facts.LagChanged):
            self._lags.put(fact.source, fact.seconds)
        else:
            self._up.put(fact.source, fact.reachable)

    def evidence_changed(self, fact: facts.EvidenceChanged) -> None:
        """Show the evidence about pods."""
        self._evidence.put(fact.source, fact.evidence_source)

    def watch_changed(self, fact: facts.WatchChanged) -> None:
        """Show whether a resource of the Kubernetes API can be watched."""
        self._watches[fact.resource] = fact.works

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield one family per metric."""
        now, shown = self._clock(), self._shown.items()
        ages = [(key, None if each.born is None else now - each.born) for key, each in shown]
        yield gauge(table.SNAPSHOT_AGE, ages)
        yield gauge(table.SNAPSHOT_PODS, [(key, each.pods) for key, each in shown])
        refused = [(key, each.refused_samples) for key, each in shown]
        yield gauge(table.REFUSED_SAMPLES, refused)
        said = [
            ((name, evidence_source), evidence_source is current)
            for name, current in self._evidence.items()
            for evidence_source in EvidenceSource
        ]
        yield gauge(table.EVIDENCE, said)
        watches = [((name,), works) for name, works in list(self._watches.items())]
        yield gauge(table.WATCH_UP, watches)
        yield gauge(table.SOURCE_UP, [((name,), up) for name, up in self._up.items()])
        yield gauge(table.SOURCE_LAG, [((name,), lag) for name, lag in self._lags.items()])
