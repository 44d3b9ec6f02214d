"""The sources of samples, over HTTP, and the evaluator that asks them.

Each of them is behind the ports in `evaluator/ports.py`; none of them decides anything.
"""

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.evaluator.ports import Alerting
from keda_gpu_scaler.settings import (
    InfluxdbSettings,
    PrometheusSettings,
    ScrapeSettings,
    Settings,
)
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.times import SLOW_SECONDS

if TYPE_CHECKING:
    from keda_gpu_scaler.sources.influxdb import InfluxdbSource
    from keda_gpu_scaler.sources.scrape.source import ScrapeSource


async def start_evaluator(  # noqa: PLR0913 - what it is made of, all but three by name
    stack: AsyncExitStack,
    settings: Settings,
    observe: facts.Observer,
    *,
    alerts: Alerting | None = None,
    slow_seconds: float = SLOW_SECONDS,
    at: float | None = None,
    is_observing: bool = False,
) -> Evaluator:
    """Open what the settings name, and return what decides; both end with the stack.

    All sources are asked about `at`, in Unix seconds; None: the present. `slow_seconds` is how long
    a record waits for a source. `is_observing`: neither KEDA nor the HPA asks. SettingsError: there
    is no cluster to query, or a source cannot be asked about `at`.
    """
    cluster = None
    without_gpus = settings.claims_without_gpus | settings.resources_without_gpus
    if settings.kubernetes:
        from keda_gpu_scaler.evidence import kubernetes  # noqa: PLC0415 - it loads much that others need not

        cluster = kubernetes.create(observe, without_gpus)
        cluster.start()
        stack.push_async_callback(cluster.close)
    ports = {}
    for name, source_settings in settings.sources.items():
        source = _open(name, source_settings, observe, without_gpus, at)
        stack.push_async_callback(source.close)
        ports[name] = source.ports(*filter(None, [cluster]))
    evaluator = Evaluator(
        ports,
        observe,
        targets=cluster,
        alerts=alerts,
        pace=settings.demand_pace,
        slow_seconds=slow_seconds,
        is_observing=is_observing,
    )
    stack.push_async_callback(evaluator.close)
    return evaluator


def _open(
    name: str,
    settings: PrometheusSettings | ScrapeSettings | InfluxdbSettings,
    observe: facts.Observer,
    without_gpus: frozenset[str],
    at: float | None,
) -> "PrometheusSource | ScrapeSource | InfluxdbSource":
    """Return the source that these settings describe.

    A direct source begins to scrape; the others connect with the first query. `without_gpus` is
    what pods may ask for and is no GPU.
    """
    if isinstance(settings, PrometheusSettings):
        client = PrometheusClient(name, settings, observe)
        return PrometheusSource(client, without_gpus=without_gpus, at=at)
    if at is not None:
        message = f"source {name} is of type {settings.type}: only prometheus can be asked about "
        raise errors.SettingsError(f"{message}the past")
    if isinstance(settings, InfluxdbSettings):
        from keda_gpu_scaler.sources import influxdb  # noqa: PLC0415 - for this kind only

        return influxdb.InfluxdbSource(name, settings, observe)
    from keda_gpu_scaler.sources.scrape import source as scrape  # noqa: PLC0415 - for this kind only

    scraped = scrape.ScrapeSource(name, settings, observe)
    scraped.start()
    return scraped
