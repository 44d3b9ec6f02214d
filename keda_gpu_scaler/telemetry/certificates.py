"""When the certificates that this process shows expire, looked up whenever somebody asks.

A certificate that rotated must not alarm anybody, and one that did not must, also while no client
connects: so this is no count of facts, but a look at the certificate that the next client gets.
"""

from collections.abc import Callable, Iterable

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from keda_gpu_scaler.telemetry import metrics


class Certificates(Collector):
    """The expiry of each server's certificate."""

    def __init__(self) -> None:
        self._expiry: dict[str, Callable[[], float]] = {}

    def follow(self, server: str, expires_at: Callable[[], float]) -> None:
        """Show from now on when this server's certificate expires."""
        self._expiry[server] = expires_at

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield the one family."""
        metric = metrics.CERTIFICATE_EXPIRY
        family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
        for server, expires_at in list(self._expiry.items()):
            family.add_metric((server,), expires_at())
        yield family
