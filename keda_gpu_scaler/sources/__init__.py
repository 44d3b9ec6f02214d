"""The sources of samples, over HTTP, and the evaluator that asks them.

Each of them is behind the ports in `evaluator/ports.py`; none of them decides anything.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.evaluator.ports import Alerting, EvidenceProvider, Source
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

__all__ = ["opened", "start_evaluator"]


@asynccontextmanager
async def opened(  # noqa: PLR0913 - what a source is made of, by name
    name: str,
    settings: PrometheusSettings | ScrapeSettings | InfluxdbSettings,
    observe: facts.Observer,
    *evidence_providers: EvidenceProvider,
    without_gpus: frozenset[str] = frozenset(),
    at: float | None = None,
    before_query: Callable[[], Awaitable[None]] | None = None,
) -> AsyncIterator[Source]:
    """Open the source that these settings describe, while the context lasts.

    A direct source begins to scrape; the others connect with the first query. The evidence of
    `evidence_providers` comes before the source's own. `at` is the time that is the present for
    every query, in Unix seconds; None: the present. `without_gpus` is what pods may ask for
    and is no GPU. Each query to a Prometheus waits for `before_query`.

    Raises:
        errors.SettingsError: only a Prometheus can be asked about another time.
    """
    source: PrometheusSource | ScrapeSource | InfluxdbSource
    if isinstance(settings, PrometheusSettings):
        client = PrometheusClient(name, settings, observe, before_query=before_query)
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
    opened_sources = {}
    for name, source in settings.sources.items():
        opening = opened(
            name,
            source,
            observe,
            *filter(None, [cluster]),
            without_gpus=without_gpus,
            at=at,
        )
        opened_sources[name] = await stack.enter_async_context(opening)
    evaluator = Evaluator(
        opened_sources,
        observe,
        targets=cluster,
        alerts=alerts,
        pace=settings.demand_pace,
        slow_seconds=slow_seconds,
        is_observing=is_observing,
    )
    stack.push_async_callback(evaluator.close)
    return evaluator
