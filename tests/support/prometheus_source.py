"""A source on a Prometheus that a test has, or on what stands in for one."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.telemetry import facts
from tests.support import http_replies


@asynccontextmanager
async def connected(
    url: str,
    observe: facts.Observer = facts.ignore,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = time.time,
    **given: object,
) -> AsyncIterator[PrometheusSource]:
    values = PrometheusSettings.model_validate({"url": url, **given})
    client = PrometheusClient("default", values, observe, clock)
    source = PrometheusSource(client, wall_clock=wall_clock)
    try:
        yield source
    finally:
        await source.close()
        await http_replies.generators_closed()
