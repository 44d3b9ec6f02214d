"""`/metrics` over a real socket: the page that prometheus_client writes, metric by metric."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import httpx
import pytest
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from keda_gpu_scaler import web
from keda_gpu_scaler.web import AT_ONCE
from tests.support.browsing import HANG_SECONDS, browsing
from tests.support.processes import until

SAMPLES = 800


class Shown(Collector):
    """A metric of each type that the scaler has, with texts that have to be escaped."""

    def __init__(self) -> None:
        self._requests = Counter("requests", "Asked.", ("code",), registry=None)
        self._requests.labels("OK").inc()
        self._seconds = Histogram("seconds", "How long.", ("code",), registry=None)
        self._seconds.labels("OK").observe(0.5)

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("nothing_yet", "# of a \\ and\na second line.", labels=("name",))
        many = GaugeMetricFamily("many", "# of a \\ and\na second line.", labels=("b", "a"))
        for number in range(SAMPLES):
            many.add_metric((f"{number} \n# EOF \\n {'x' * 100}", '"ü{}"'), number * 1e4 / 7)
        yield many
        yield GaugeMetricFamily("one", "One.", value=1)
        yield from self._requests.collect()
        yield from self._seconds.collect()


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
    assert [*text_string_to_metric_families(page)] == [*text_string_to_metric_families(expected)]
    assert page.partition("# TYPE one")[2] == expected.partition("# TYPE one")[2]


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


class Long(Shown):
    """A page that fits into no socket's buffers, and how often somebody began to be shown it."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = 0

    def collect(self) -> Iterable[Metric]:
        self.begun += 1
        many = list(super().collect())[1]
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
