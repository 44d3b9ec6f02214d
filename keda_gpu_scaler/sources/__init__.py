"""The sources of samples, over HTTP. `alerts/replicas.py` uses the same client for other replicas.

Every source implements the port in `evaluator/ports.py`; none of them decides anything.
"""

from keda_gpu_scaler.evaluator.ports import Source
from keda_gpu_scaler.settings import InfluxdbSettings, PrometheusSettings, ScrapeSettings
from keda_gpu_scaler.sources.influxdb.source import InfluxdbSource
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.sources.scrape.source import ScrapeSource
from keda_gpu_scaler.telemetry import facts

__all__ = ["create"]


def create(
    name: str,
    settings: PrometheusSettings | ScrapeSettings | InfluxdbSettings,
    observe: facts.Observer,
) -> Source:
    """Return the source that these settings describe; it does not connect before its start."""
    if isinstance(settings, PrometheusSettings):
        return PrometheusSource(name, settings, observe)
    if isinstance(settings, InfluxdbSettings):
        return InfluxdbSource(name, settings, observe)
    return ScrapeSource(name, settings, observe)
