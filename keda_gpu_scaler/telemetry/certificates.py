"""When the certificates that this process shows expire, looked up whenever somebody asks.

A certificate that rotated must not alarm anybody, and one that did not must, also while no client
connects: so this is no count of facts, but a look at the certificate that the next client gets.
"""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from keda_gpu_scaler.telemetry import metrics
from keda_gpu_scaler.telemetry.families import gauge


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
        yield gauge(metrics.CERTIFICATE_EXPIRY, samples)
