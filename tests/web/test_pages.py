"""`/metrics` over a real socket: the page that prometheus_client writes, metric by metric."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import httpx
import pytest
from prometheus_client import (
    CollectorRegistry,
    Counter,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from keda_gpu_scaler import web
from keda_gpu_scaler.web import AT_ONCE
from testbed.processes import until
from tests.support.browsing import HANG_SECONDS, browsing


class Shown(Collector):
    """A few metrics, of which one has no sample yet."""

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("nothing_yet", "None.", labels=("name",))
        yield GaugeMetricFamily("one", "One.", value=1)
        counted = Counter("requests", "Asked.", ("code",), registry=None)
        counted.labels('"ü{}"\n').inc()
        yield from counted.collect()


@asynccontextmanager
async def serving(collector: Collector) -> AsyncIterator[httpx.AsyncClient]:
    registry = CollectorRegistry()
    registry.register(collector)
    async with browsing(web.create_app(registry, lambda: True)) as client:
        yield client


async def test_the_page_says_what_prometheus_client_writes() -> None:
    shown = Shown()
    async with serving(shown) as client:
        page = (await client.get("/metrics")).text
    expected = generate_latest(shown).decode()
    assert re.sub("_created.*", "", page) == re.sub("_created.*", "", expected)


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
async def test_metrics_come_as_text_whatever_was_asked_for(accept: str) -> None:
    async with serving(Shown()) as client:
        answer = await client.get("/metrics", headers={"accept": accept})
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.text.startswith("# HELP nothing_yet")


async def test_anything_else_is_refused_in_plain_text() -> None:
    async with serving(Shown()) as client:
        missing = await client.get("/")
        wrong = await client.post("/metrics")
    assert (missing.status_code, missing.text) == (404, "Not Found")
    assert (wrong.status_code, wrong.text) == (405, "Method Not Allowed")
    assert missing.headers["content-type"] == "text/plain; charset=utf-8"
    assert "server" not in missing.headers


class Long(Collector):
    """A page that fits into no socket's buffers, and how often somebody began to be shown it."""

    def __init__(self) -> None:
        self.begun = 0

    def collect(self) -> Iterable[Metric]:
        self.begun += 1
        many = GaugeMetricFamily("many", "Many.", labels=("name",))
        for number in range(800):
            many.add_metric((f"{number} {'x' * 100}",), number)
        for _ in range(200):
            yield many


@pytest.mark.slow
async def test_clients_that_do_not_read_delay_other_pages_at_most_until_they_are_gone() -> None:
    request = b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n"
    long = Long()

    async def all_began() -> bool:
        return long.begun == AT_ONCE

    async with serving(long) as client:
        address = client.base_url.host, client.base_url.port
        strangers = [await asyncio.open_connection(*address, limit=1) for _ in range(AT_ONCE)]
        for _, writer in strangers:
            writer.write(request)
        await until(all_began, HANG_SECONDS, "all are shown the page")
        one_more = asyncio.create_task(client.get("/metrics", timeout=HANG_SECONDS))
        assert (await client.get("/healthz")).text == "ok\n"
        assert long.begun == AT_ONCE
        for _, writer in strangers:
            writer.transport.abort()
        assert (await one_more).status_code == 200
