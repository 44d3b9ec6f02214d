"""The scaler's own metrics, counted from facts; those of sources and triggers are in `series`.

Names follow Prometheus' conventions: base units, `_total` for counters. Labels are bounded: sources
and methods are few, triggers end when no call asks for them.
"""

import functools
import time
from collections.abc import Callable, Iterable, Mapping

import prometheus_client
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from keda_gpu_scaler import __version__
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.series import Series

_RPC_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""From an answer out of memory, about a millisecond, to beyond the 2.5 s that an RPC waits."""
_QUERY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Telemetry(facts.Subscriber, Collector):
    """Counts facts in its own registry, which any thread may read."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        lines_dropped: Callable[[], int] = int,
        tasks: Callable[[], int] = int,
    ) -> None:
        self.registry = registry = prometheus_client.CollectorRegistry()
        self._lines_dropped = lines_dropped
        self._firing: dict[ScaledObject, int] = {}
        series = Series(clock)
        prometheus_client.PlatformCollector(registry)
        prometheus_client.ProcessCollector(registry=registry)
        registry.register(self)
        registry.register(series)
        new_counter = functools.partial(prometheus_client.Counter, registry=registry)
        new_gauge = functools.partial(prometheus_client.Gauge, registry=registry)
        new_histogram = functools.partial(prometheus_client.Histogram, registry=registry)
        new_gauge(
            "keda_gpu_scaler_build_info", "1, for the version that runs.", ["version"]
        ).labels(__version__).set(1)
        new_gauge(
            "keda_gpu_scaler_tasks",
            "Tasks of the event loop: one or two for each open call and stream, and one for each "
            "query under way.",
        ).set_function(tasks)
        rpcs = new_counter(
            "keda_gpu_scaler_rpcs_total", "Calls from KEDA that ended.", ["method", "code"]
        )
        rpc_seconds = new_histogram(
            "keda_gpu_scaler_rpc_duration_seconds",
            "How long calls took.",
            ["method"],
            buckets=_RPC_BUCKETS,
        )
        # To find the one of some labels takes prometheus_client longer than to count.
        self._rpcs = functools.cache(rpcs.labels)
        self._rpc_seconds = functools.cache(rpc_seconds.labels)
        self._queries = new_counter(
            "keda_gpu_scaler_source_queries_total",
            "Requests to a source, by whether it answered: ok, or error, also where its answer "
            "took too long and was given up.",
            ["source", "query", "outcome"],
        )
        self._query_seconds = new_histogram(
            "keda_gpu_scaler_source_query_duration_seconds",
            "How long requests to a source took.",
            ["source", "query"],
            buckets=_QUERY_BUCKETS,
        )
        self._watches = new_gauge(
            "keda_gpu_scaler_kubernetes_watch_up",
            "1 while a resource of the Kubernetes API can be followed, 0 while not.",
            ["resource"],
        )
        self._notifications = new_counter(
            "keda_gpu_scaler_webhook_notifications_total",
            "Messages to the webhook, by the HTTP status of the answer and by who sent them: "
            "alertmanager, grafana, grafana-dashboard, or unknown for what was not read.",
            ["sender", "code"],
        )
        self._alerts = new_gauge(
            "keda_gpu_scaler_alerts_firing",
            "Alerts that fire for a ScaledObject; absent where there are none.",
            ["namespace", "scaled_object"],
        )
        self._peers = new_gauge(
            "keda_gpu_scaler_peers",
            "Addresses of replicas of the scaler, its own among them, when they were last told of "
            "alerts or asked for theirs: reachable or unreachable.",
            ["state"],
        )
        self._expiry = new_gauge(
            "keda_gpu_scaler_certificate_expiry_timestamp_seconds",
            "When the certificate that new clients are shown expires (server), or the first CA of "
            "those that they have to show (client_ca), in Unix seconds: of the grpc or of the http "
            "port; absent where a port has none.",
            ["server", "kind"],
        )
        super().__init__(
            {
                facts.Evaluated: series.evaluated,
                facts.DemandKnown: series.demand_known,
                facts.SnapshotTaken: series.snapshot_taken,
                facts.SourceChanged: series.source_changed,
                facts.LagChanged: series.lag_changed,
                facts.EvidenceChanged: series.evidence_changed,
                facts.WatchChanged: self._watch_changed,
                facts.Queried: self._queried,
                facts.Called: self._called,
                facts.AlertChanged: self._alert_changed,
                facts.Notified: self._notified,
                facts.PeersAsked: self._peers_asked,
            }
        )

    def follow_certificate(self, server: str, expiries: Callable[[], Mapping[str, float]]) -> None:
        """Show the expiry of this server's certificates from now on, by their kind.

        It is read at each request, because it does not come from facts: it must be right also
        while no client connects.
        """
        for kind in expiries():

            def expires_at(kind: str = kind) -> float:
                return expiries()[kind]

            self._expiry.labels(server, kind).set_function(expires_at)

    def _called(self, fact: facts.Called) -> None:
        self._rpcs(fact.method, fact.code).inc()
        self._rpc_seconds(fact.method).observe(fact.seconds)

    def _queried(self, fact: facts.Queried) -> None:
        outcome = "ok" if fact.error is None else "error"
        self._queries.labels(fact.source, fact.query, outcome).inc()
        self._query_seconds.labels(fact.source, fact.query).observe(fact.seconds)

    def _watch_changed(self, fact: facts.WatchChanged) -> None:
        self._watches.labels(fact.resource).set(fact.works)

    def _alert_changed(self, fact: facts.AlertChanged) -> None:
        count = self._firing.pop(fact.scaled_object, 0) + (1 if fact.fires else -1)
        if count:
            self._firing[fact.scaled_object] = count
            self._alerts.labels(*fact.scaled_object).set(count)
        else:
            self._alerts.remove(*fact.scaled_object)

    def _notified(self, fact: facts.Notified) -> None:
        self._notifications.labels(fact.sender, str(fact.status)).inc()

    def _peers_asked(self, fact: facts.PeersAsked) -> None:
        self._peers.labels("reachable").set(fact.reachable)
        self._peers.labels("unreachable").set(fact.unreachable)

    def collect(self) -> Iterable[Metric]:
        yield CounterMetricFamily(
            "keda_gpu_scaler_log_lines_dropped_total",
            "Lines of the log that were not written, because its reader hangs or is gone, or the "
            "disk is full.",
            value=self._lines_dropped(),
        )
