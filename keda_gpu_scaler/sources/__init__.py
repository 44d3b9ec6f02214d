"""The sources of samples, over HTTP. Other replicas are asked by the same client, in `transport`.

Each of them is behind the ports in `evaluator/ports.py`; none of them decides anything.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.ports import EvidenceProvider, Source
from keda_gpu_scaler.settings import InfluxdbSettings, PrometheusSettings, ScrapeSettings
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.telemetry import facts

if TYPE_CHECKING:
    from keda_gpu_scaler.sources.influxdb import InfluxdbSource
    from keda_gpu_scaler.sources.scrape.source import ScrapeSource

__all__ = ["opened"]


@asynccontextmanager
async def opened(
    name: str,
    settings: PrometheusSettings | ScrapeSettings | InfluxdbSettings,
    observe: facts.Observer,
    *evidence_providers: EvidenceProvider,
    without_gpus: frozenset[str] = frozenset(),
    at: float | None = None,
) -> AsyncIterator[Source]:
    """Open the source that these settings describe, while the context lasts.

    A direct source begins to scrape; the others connect with the first query. The evidence of
    `evidence_providers` comes before the source's own. `at` is the time that is the present for
    every query, in Unix seconds; None: the present. `without_gpus` is what pods may ask for
    and is no GPU.

    Raises:
        errors.SettingsError: only a Prometheus can be asked about another time.
    """
    source: PrometheusSource | ScrapeSource | InfluxdbSource
    if isinstance(settings, PrometheusSettings):
        client = PrometheusClient(name, settings, observe)
        source = PrometheusSource(client, without_gpus=without_gpus, at=at)
    elif at is not None:
        message = f"source {name} is of type {settings.type}: only prometheus can be asked about "
        raise errors.SettingsError(f"{message}the past")
    elif isinstance(settings, InfluxdbSettings):
        from keda_gpu_scaler.sources import influxdb  # noqa: PLC0415 - for this kind only

        source = influxdb.InfluxdbSource(name, settings, observe)
    else:
        from keda_gpu_scaler.sources.scrape import source as scrape  # noqa: PLC0415 - for this kind only

        source = scrape.ScrapeSource(name, settings, observe)
        source.start()
    try:
        yield source.ports(*evidence_providers)
    finally:
        await source.close()
