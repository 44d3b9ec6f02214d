"""The metrics of alerts, of those who send them, and of the replicas that tell each other."""

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from keda_gpu_scaler import facts
from keda_gpu_scaler.spec import ScaledObject
from keda_gpu_scaler.telemetry import metrics

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
        told = CounterMetricFamily(
            *_named(metrics.NOTIFICATIONS), labels=metrics.NOTIFICATIONS.labels
        )
        for whence, count in list(self._notifications.items()):
            told.add_metric(whence, count)
        yield told
        firing = GaugeMetricFamily(*_named(metrics.ALERTS), labels=metrics.ALERTS.labels)
        for scaled_object, count in list(self._firing.items()):
            firing.add_metric(scaled_object, count)
        yield firing
        peers = GaugeMetricFamily(*_named(metrics.PEERS), labels=metrics.PEERS.labels)
        for state, count in self._peers.items():
            peers.add_metric((state,), count)
        yield peers


def _named(metric: metrics.Metric) -> tuple[str, str]:
    return metric.name, metric.meaning
