"""The metrics of alerts, of their senders, of the replicas, and of certificates' expiry.

The expiry is read at each request for /metrics: it is that of the certificate that the next client
gets. It does not come from facts, because it must be right also while no client connects: a rotated
certificate must not cause an alarm, one that was not rotated must.
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
    """The firing alerts, the messages of their senders, and the reachable replicas."""

    def __init__(self) -> None:
        self._firing: Counter[ScaledObject] = Counter()
        self._notifications: Counter[tuple[str, str]] = Counter()
        self._peers: dict[str, int] = {}

    def __call__(self, fact: AlertFact) -> None:
        """Count the fact."""
        match fact:
            case facts.AlertChanged():
                self._alert_changed(fact)
            case facts.Notified():
                self._notifications[fact.sender, str(fact.status)] += 1
            case facts.PeersAsked():
                self._peers = {"reachable": fact.reachable, "unreachable": fact.unreachable}
            case _:
                pass  # only in the log: a series per replica would come and go with the replicas

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
    """The expiry of each server's certificate, and of the CAs of its clients."""

    def __init__(self) -> None:
        self._expiries: dict[str, Callable[[], Mapping[str, float]]] = {}

    def follow(self, server: str, expiries: Callable[[], Mapping[str, float]]) -> None:
        """Show the expiry of this server's certificates from now on, by their kind."""
        self._expiries[server] = expiries

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the family of the expiry."""
        samples = (
            ((server, kind), expires_at)
            for server, expiries in list(self._expiries.items())
            for kind, expires_at in expiries().items()
        )
        yield gauge(table.CERTIFICATE_EXPIRY, samples)
