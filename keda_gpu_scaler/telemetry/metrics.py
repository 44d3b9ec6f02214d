"""The scaler's own metrics, made from facts.

Names follow Prometheus' conventions: base units, `_total` for counters. Labels are bounded: sources
and methods are few, and the series of sources and triggers end ten minutes after they were last
asked about. A trigger is identified by its ScaledObject and its metric's name. Two triggers with
both in common share their series, which show the one decided last. The age of a snapshot keeps
growing while a source is down and KEDA keeps asking: alert on that.
"""

import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

import prometheus_client
from cachetools import TTLCache
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from keda_gpu_scaler import __version__
from keda_gpu_scaler.decision.decision import Decision, State
from keda_gpu_scaler.decision.summary import Summary
from keda_gpu_scaler.snapshot.evidence import EvidenceSource
from keda_gpu_scaler.spec.spec import Demand, ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import FORGET_SECONDS

_RPC_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""From an answer out of memory, about a millisecond, to beyond the 2.5 s that an RPC waits."""
_QUERY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SNAPSHOTS = 1_000
"""Combinations of source, signal and profile: a handful, unless a source is per namespace."""
_SOURCE = ("source",)
_SNAPSHOT = ("source", "signal", "profile")
_TRIGGER = ("namespace", "scaled_object", "metric")

K = TypeVar("K")
V = TypeVar("V")


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
        self._series = series = RecentStates(clock)
        prometheus_client.PlatformCollector(registry)
        prometheus_client.ProcessCollector(registry=registry)
        registry.register(self)
        registry.register(series)
        new_counter = functools.partial(prometheus_client.Counter, registry=registry)
        new_gauge = functools.partial(prometheus_client.Gauge, registry=registry)
        new_histogram = functools.partial(prometheus_client.Histogram, registry=registry)
        new_gauge(
            "keda_gpu_scaler_build_info", "1, with the version as a label.", ["version"]
        ).labels(__version__).set(1)
        new_gauge(
            "keda_gpu_scaler_tasks",
            "Tasks of the event loop: one or two for each open call or stream, one for each query.",
        ).set_function(tasks)
        rpcs = new_counter(
            "keda_gpu_scaler_rpcs_total", "Calls from KEDA that ended.", ["method", "code"]
        )
        rpc_seconds = new_histogram(
            "keda_gpu_scaler_rpc_duration_seconds",
            "Duration of calls.",
            ["method"],
            buckets=_RPC_BUCKETS,
        )
        # To find the one of some labels takes prometheus_client longer than to count.
        self._rpcs = functools.cache(rpcs.labels)
        self._rpc_seconds = functools.cache(rpc_seconds.labels)
        self._queries = new_counter(
            "keda_gpu_scaler_source_queries_total",
            "Requests to a source, by outcome: ok, or error (timeouts included).",
            ["source", "query", "outcome"],
        )
        self._query_seconds = new_histogram(
            "keda_gpu_scaler_source_query_duration_seconds",
            "Duration of requests to a source.",
            ["source", "query"],
            buckets=_QUERY_BUCKETS,
        )
        self._watches = new_gauge(
            "keda_gpu_scaler_kubernetes_watch_up",
            "1 while this resource of the Kubernetes API can be watched, else 0.",
            ["resource"],
        )
        self._notifications = new_counter(
            "keda_gpu_scaler_webhook_notifications_total",
            "Messages to the webhook, by HTTP status and sender: alertmanager, grafana, "
            "grafana-dashboard, or unknown.",
            ["sender", "code"],
        )
        self._alerts = new_gauge(
            "keda_gpu_scaler_alerts_firing",
            "Alerts that fire for a ScaledObject; absent if none.",
            ["namespace", "scaled_object"],
        )
        self._peers = new_gauge(
            "keda_gpu_scaler_peers",
            "Addresses of the scaler's replicas, this one included, at the last exchange of "
            "alerts: reachable or unreachable.",
            ["state"],
        )
        self._expiry = new_gauge(
            "keda_gpu_scaler_certificate_expiry_timestamp_seconds",
            "Unix time at which a port's (grpc, http) certificate expires (server), or the first "
            "of its clients' CAs (client_ca); absent if it has none.",
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
        self._series.queried(fact)
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
            "Log lines that were not written: the reader hangs or is gone, or the disk is full.",
            value=self._lines_dropped(),
        )


class Recent(Generic[K, V]):
    """The newest value of each key that was put within `FORGET_SECONDS`; any thread may read."""

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        """Hold at most `limit` values; of more, the one that was put longest ago ends."""
        self._values: TTLCache[K, V] = TTLCache(limit, FORGET_SECONDS, clock)
        self._lock = threading.Lock()

    def put(self, key: K, value: V) -> None:
        """Hold a value from now on."""
        with self._lock:
            self._values[key] = value

    def renewed(self, key: K, new: Callable[[], V]) -> V:
        """Return the value of a key, or a new one; it is held as if it was put now."""
        with self._lock:
            value = self._values[key] = self._values.get(key) or new()
            return value

    def items(self) -> list[tuple[K, V]]:
        with self._lock, self._values.timer:  # the time stands still, so none ends meanwhile
            return list(self._values.items())


def _gauge(
    name: str,
    meaning: str,
    labels: tuple[str, ...],
    samples: Iterable[tuple[tuple[str, ...], float | None]],
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, number in samples:
        if number is not None:
            family.add_metric(values, number)
    return family


def _one_of(
    members: type[StrEnum], held: Iterable[tuple[tuple[str, ...], StrEnum | None]]
) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield a sample per key and member: 1 for the member that the key has, 0 for the others.

    A key that has none has no samples.
    """
    for key, member_held in held:
        if member_held is not None:
            for member in members:
                yield (*key, member), member is member_held


@dataclass(slots=True)
class _Source:
    is_up: bool | None = None
    lag_seconds: float | None = None
    evidence: EvidenceSource | None = None


@dataclass(slots=True)
class _Snapshot:
    pods: int | None = None
    refused_samples: int | None = None
    stuck_gpus: int | None = None
    at: float | None = None
    """The snapshot's evaluation time, on this process's clock."""


class _Decided(NamedTuple):
    """What is shown of a decision; a trigger with long texts does not stay for its sake."""

    decision: Decision
    summary: Summary
    at: float
    """The time on this process's clock."""


class RecentStates(Collector):
    """The state of each source and of its snapshots, and the last decision of each trigger."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sources: Recent[str, _Source] = Recent(SNAPSHOTS, clock)
        self._snapshots: Recent[tuple[str, str, str], _Snapshot] = Recent(SNAPSHOTS, clock)
        self._triggers: Recent[tuple[str, str, str], _Decided] = Recent(facts.TRIGGERS, clock)
        self._demands: Recent[tuple[str, str, str], Demand] = Recent(facts.TRIGGERS, clock)

    def snapshot_taken(self, fact: facts.SnapshotTaken) -> None:
        snapshot = self._snapshots.renewed((fact.source, fact.signal, fact.profile), _Snapshot)
        snapshot.pods, snapshot.refused_samples = fact.pods, fact.refused_samples
        snapshot.stuck_gpus = fact.stuck_gpus
        self._sources.renewed(fact.source, _Source).is_up = True

    def queried(self, fact: facts.Queried) -> None:
        """Show a source while it is asked, before there is a trigger too."""
        self._sources.renewed(fact.source, _Source)

    def source_changed(self, fact: facts.SourceChanged) -> None:
        self._sources.renewed(fact.source, _Source).is_up = fact.works

    def lag_changed(self, fact: facts.LagChanged) -> None:
        self._sources.renewed(fact.source, _Source).lag_seconds = fact.seconds

    def evidence_changed(self, fact: facts.EvidenceChanged) -> None:
        self._sources.renewed(fact.source, _Source).evidence = fact.evidence_source

    def demand_known(self, fact: facts.DemandKnown) -> None:
        self._demands.put((*fact.scaled_object, fact.spec.metric_name), fact.demand)

    def evaluated(self, fact: facts.Evaluated) -> None:
        now, spec, age = self._clock(), fact.spec, fact.snapshot_age_seconds
        decided = _Decided(fact.decision, fact.summary, now)
        self._triggers.put((*fact.scaled_object, spec.metric_name), decided)
        snapshot_key = fact.source, str(spec.shared_signal), spec.profile
        snapshot = self._snapshots.renewed(snapshot_key, _Snapshot)
        if age is not None:  # the age is the fact's: only the source has its own clock
            snapshot.at = now - age
        self._sources.renewed(fact.source, _Source)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        now, snapshots, triggers = self._clock(), self._snapshots.items(), self._triggers.items()
        sources = [((name,), source) for name, source in self._sources.items()]
        yield _gauge(
            "keda_gpu_scaler_source_up",
            "1 while a source answers, else 0.",
            _SOURCE,
            ((name, source.is_up) for name, source in sources),
        )
        yield _gauge(
            "keda_gpu_scaler_source_lag_seconds",
            "Delay of all samples of a source, if above a minute; absent if it never was.",
            _SOURCE,
            ((name, source.lag_seconds) for name, source in sources),
        )
        yield _gauge(
            "keda_gpu_scaler_source_evidence",
            "1 for the source of the list of pods, 0 for the others: kubernetes, "
            "kube-state-metrics or exporters.",
            (*_SOURCE, "evidence"),
            _one_of(EvidenceSource, ((name, source.evidence) for name, source in sources)),
        )
        yield _gauge(
            "keda_gpu_scaler_snapshot_age_seconds",
            "Age of the data behind decisions.",
            _SNAPSHOT,
            ((key, now - snapshot.at) for key, snapshot in snapshots if snapshot.at is not None),
        )
        yield _gauge(
            "keda_gpu_scaler_snapshot_pods",
            "Pods with a GPU in the newest snapshot.",
            _SNAPSHOT,
            ((key, snapshot.pods) for key, snapshot in snapshots),
        )
        yield _gauge(
            "keda_gpu_scaler_snapshot_refused_samples",
            "Samples in the newest snapshot that were refused as impossible loads.",
            _SNAPSHOT,
            ((key, snapshot.refused_samples) for key, snapshot in snapshots),
        )
        yield _gauge(
            "keda_gpu_scaler_snapshot_stuck_gpus",
            "GPUs with a metric that is stuck at 0 while another one shows work, which is read.",
            _SNAPSHOT,
            ((key, snapshot.stuck_gpus) for key, snapshot in snapshots),
        )
        for name, meaning, read in _GAUGES:
            yield _gauge(
                name, meaning, _TRIGGER, ((key, read(decided)) for key, decided in triggers)
            )
        yield _gauge(
            "keda_gpu_scaler_trigger_decision_age_seconds",
            "Time since this replica last answered for the trigger.",
            _TRIGGER,
            ((key, now - decided.at) for key, decided in triggers),
        )
        yield _gauge(
            "keda_gpu_scaler_trigger_demand",
            "Last value of demandQuery; absent while unknown.",
            _TRIGGER,
            ((key, demand.value) for key, demand in self._demands.items()),
        )
        yield _gauge(
            "keda_gpu_scaler_trigger_state",
            "1 for the trigger's state, 0 for the others.",
            (*_TRIGGER, "state"),
            _one_of(State, ((key, decided.decision.state) for key, decided in triggers)),
        )
        yield _gauge(
            "keda_gpu_scaler_trigger_evidence",
            "1 for the evidence of the last decision, 0 for the others: kubernetes, "
            "kube-state-metrics or exporters.",
            (*_TRIGGER, "evidence"),
            _one_of(
                EvidenceSource, ((key, decided.decision.evidence) for key, decided in triggers)
            ),
        )


_GAUGES: tuple[tuple[str, str, Callable[[_Decided], float | None]], ...] = (
    (
        "keda_gpu_scaler_trigger_value",
        "Value that GetMetrics returns; absent during a hold.",
        lambda decided: decided.summary.value,
    ),
    (
        "keda_gpu_scaler_trigger_average",
        "Load per replica, in the threshold's unit; absent while unknown.",
        lambda decided: decided.summary.average,
    ),
    (
        "keda_gpu_scaler_trigger_threshold",
        "Target per replica.",
        lambda decided: decided.summary.threshold,
    ),
    (
        "keda_gpu_scaler_trigger_active",
        "1 while IsActive returns active, else 0; absent while it fails.",
        lambda decided: decided.summary.active,
    ),
    (
        "keda_gpu_scaler_recommended_replicas",
        (
            "Replicas that the last answer asks for, before minimum, maximum, stabilization and "
            "policies; 0 while inactive, absent while unknown or held."
        ),
        lambda decided: decided.summary.recommended,
    ),
    (
        "keda_gpu_scaler_trigger_expected_replicas",
        "Replicas that should report.",
        lambda decided: decided.summary.replicas,
    ),
    (
        "keda_gpu_scaler_trigger_measured_replicas",
        "Replicas whose load is known.",
        lambda decided: decided.summary.measured,
    ),
    (
        "keda_gpu_scaler_trigger_reporting_pods",
        "Pods that report now.",
        lambda decided: decided.decision.reporting_pods,
    ),
    (
        "keda_gpu_scaler_trigger_ignored_pods",
        "Ready pods that request no GPU and never showed one, while others of the workload did.",
        lambda decided: len(decided.decision.ignored),
    ),
    (
        "keda_gpu_scaler_trigger_unschedulable_replicas",
        "Replicas with a pod for which the scheduler finds no node yet; absent if none.",
        lambda decided: decided.summary.unschedulable or None,
    ),
    (
        "keda_gpu_scaler_trigger_futile_scale_out",
        (
            "1 if neither the demand nor the load of a replica fell after the last scale-out, "
            "though the demand did not rise; absent if not, and without a demand."
        ),
        lambda decided: 1 if decided.decision.futile else None,
    ),
)
"""Of each trigger: the name, the meaning, and what reads the value; None: no sample."""
