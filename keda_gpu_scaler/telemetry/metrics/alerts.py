"""The metrics of alerts, of their senders and of the replicas; and when certificates expire.

The last is looked up whenever /metrics is asked for. A certificate that rotated must not alarm
anybody, and one that did not must, also while no client connects: so this is no count of facts, but
a look at the certificate that the next client gets.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.telemetry.metrics import table
from keda_gpu_scaler.telemetry.metrics.expiring import gauge

AlertFact = facts.AlertChanged | facts.Notified | facts.PeerChanged | facts.PeersAsked


class Alerts(Collector):
    """Which alerts fire, who said so, and whether other replicas can be told."""

    def __init__(self) -> None:
        self._firing: Counter[ScaledObject] = Counter()
        self._notifications: Counter[tuple[str, str]] = Counter()
        self._peers: dict[str, int] = {}

    def __call__(self, fact: AlertFact) -> None:
        """Count it."""
        match fact:
            case facts.AlertChanged():
                self._alert_changed(fact)
            case facts.Notified():
                self._notifications[fact.sender, str(fact.status)] += 1
            case facts.PeersAsked():
                self._peers = {"reachable": fact.reachable, "unreachable": fact.unreachable}
            case _:
                pass  # that is in the log; replicas come and go, and so would series

    def _alert_changed(self, fact: facts.AlertChanged) -> None:
        self._firing[fact.scaled_object] += 1 if fact.fires else -1
        if not self._firing[fact.scaled_object]:
            del self._firing[fact.scaled_object]

    def collect(self) -> Iterable[Metric]:
        """Yield one family per metric."""
        told = CounterMetricFamily(*_named(table.NOTIFICATIONS), labels=table.NOTIFICATIONS.labels)
        for whence, count in list(self._notifications.items()):
            told.add_metric(whence, count)
        yield told
        firing = GaugeMetricFamily(*_named(table.ALERTS), labels=table.ALERTS.labels)
        for scaled_object, count in list(self._firing.items()):
            firing.add_metric(scaled_object, count)
        yield firing
        peers = GaugeMetricFamily(*_named(table.PEERS), labels=table.PEERS.labels)
        for state, count in self._peers.items():
            peers.add_metric((state,), count)
        yield peers


def _named(metric: table.Metric) -> tuple[str, str]:
    return metric.name, metric.meaning


class Certificates(Collector):
    """The expiry of what each server shows, and of what it asks for."""

    def __init__(self) -> None:
        self._expiries: dict[str, Callable[[], Mapping[str, float]]] = {}

    def follow(self, server: str, expiries: Callable[[], Mapping[str, float]]) -> None:
        """Show from now on when this server's certificates expire, by their kind."""
        self._expiries[server] = expiries

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the one family."""
        samples = (
            ((server, kind), expires_at)
            for server, expiries in list(self._expiries.items())
            for kind, expires_at in expiries().items()
        )
        yield gauge(table.CERTIFICATE_EXPIRY, samples)
