"""Where samples come from, over HTTP. Other replicas are asked with the same client, by `peers/`.

Every source implements the port in `keda_gpu_scaler/source.py`; none of them decides anything.
"""

from keda_gpu_scaler import facts
from keda_gpu_scaler.settings import InfluxdbSettings, PrometheusSettings, ScrapeSettings
from keda_gpu_scaler.source import Source
from keda_gpu_scaler.sources.influxdb import InfluxdbSource
from keda_gpu_scaler.sources.prometheus import PrometheusSource
from keda_gpu_scaler.sources.scrape import ScrapeSource

__all__ = ["create"]


def create(
    name: str,
    settings: PrometheusSettings | ScrapeSettings | InfluxdbSettings,
    observe: facts.Observer,
) -> Source:
    """Return the source that these settings describe; it connects to nothing before its start."""
    if isinstance(settings, PrometheusSettings):
        return PrometheusSource(name, settings, observe)
    if isinstance(settings, InfluxdbSettings):
        return InfluxdbSource(name, settings, observe)
    return ScrapeSource(name, settings, observe)
