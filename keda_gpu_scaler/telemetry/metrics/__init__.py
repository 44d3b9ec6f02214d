"""The scaler's own metrics, counted from facts.

    table      every metric with its type, labels and meaning
    triggers   the decisions of each trigger that KEDA asked about recently
    snapshots  the state of each source and its data
    calls      KEDA's calls, and how long they took
    alerts     firing alerts, their senders and the replicas; the expiry of certificates
    losses     lines of the log that were dropped, observers that failed
    lines      gauges of many triggers as text
    expiring   values that end when they were not updated for a while

The core never counts: it states facts. Nothing here decides, logs or speaks HTTP.
"""

import time
from collections.abc import Callable
from typing import get_args

import prometheus_client
from prometheus_client import Counter, Gauge, Histogram

from keda_gpu_scaler import __version__
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics import table
from keda_gpu_scaler.telemetry.metrics.alerts import AlertFact, Alerts, Certificates
from keda_gpu_scaler.telemetry.metrics.calls import Calls
from keda_gpu_scaler.telemetry.metrics.losses import Losses
from keda_gpu_scaler.telemetry.metrics.snapshots import Snapshots
from keda_gpu_scaler.telemetry.metrics.table import METRICS, Metric
from keda_gpu_scaler.telemetry.metrics.triggers import Triggers

__all__ = ["METRICS", "Metric", "Telemetry"]

_QUERY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Telemetry(facts.Subscriber):
    """Counts facts in its own registry."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        lines_dropped: Callable[[], int] = int,
        tasks: Callable[[], int] = int,
    ) -> None:
        """Register every metric; counters start at zero.

        Args:
            clock: seconds that never go back; series of triggers without calls end by it.
            lines_dropped: returns how many lines of the log were not written.
            tasks: returns how many tasks the event loop has.
        """
        self.registry = prometheus_client.CollectorRegistry()
        prometheus_client.PlatformCollector(self.registry)
        prometheus_client.ProcessCollector(registry=self.registry)
        _state_version(self.registry)
        Gauge(table.TASKS.name, table.TASKS.meaning, registry=self.registry).set_function(tasks)
        calls = Calls()
        self.registry.register(calls)
        queries, seconds = table.QUERIES, table.QUERY_SECONDS
        self._queries = Counter(
            queries.name, queries.meaning, queries.labels, registry=self.registry
        )
        self._query_seconds = Histogram(
            seconds.name,
            seconds.meaning,
            seconds.labels,
            buckets=_QUERY_BUCKETS,
            registry=self.registry,
        )
        self._triggers, self._snapshots = Triggers(clock), Snapshots(clock)
        self._alerts = Alerts()
        super().__init__(
            {
                facts.Evaluated: self._evaluated,
                facts.DemandKnown: self._triggers.demand_known,
                facts.SnapshotTaken: self._snapshots.taken,
                facts.SourceChanged: self._snapshots.source_changed,
                facts.LagChanged: self._snapshots.source_changed,
                facts.EvidenceChanged: self._snapshots.evidence_changed,
                facts.WatchChanged: self._snapshots.watch_changed,
                facts.Queried: self._queried,
                facts.Called: calls.called,
                **dict.fromkeys(get_args(AlertFact), self._alerts),
            }
        )
        self.certificates = Certificates()
        """Read at each request for /metrics."""
        self.losses = Losses(lines_dropped)
        self.registry.register(self._triggers)
        self.registry.register(self._snapshots)
        self.registry.register(self._alerts)
        self.registry.register(self.certificates)
        self.registry.register(self.losses)

    def _evaluated(self, fact: facts.Evaluated) -> None:
        self._triggers.evaluated(fact)
        self._snapshots.evaluated(fact)

    def _queried(self, fact: facts.Queried) -> None:
        outcome = "ok" if fact.error is None else "error"
        self._queries.labels(fact.source, fact.query, outcome).inc()
        self._query_seconds.labels(fact.source, fact.query).observe(fact.seconds)


def _state_version(registry: prometheus_client.CollectorRegistry) -> None:
    metric = table.BUILD_INFO
    gauge = Gauge(metric.name, metric.meaning, metric.labels, registry=registry)
    gauge.labels(__version__).set(1)
