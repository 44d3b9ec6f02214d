"""`/metrics` in slices, over a real socket: the same page as in one piece."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import httpx
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from keda_gpu_scaler import web
from keda_gpu_scaler.web.pages import AT_ONCE, SLICE_BYTES
from tests.support.processes import until

HANG_SECONDS = 30
OPENMETRICS = {"accept": "application/openmetrics-text; version=1.0.0"}
PARTS, SAMPLES = 4, 800


class InParts(Collector):
    """A family in parts between two whole ones, of which the first has no samples."""

    def collect(self) -> Iterable[Metric]:
        """Yield them, large enough for several slices."""
        yield GaugeMetricFamily("before", "Nothing yet.", labels=("name",))
        for part in range(PARTS):
            family = GaugeMetricFamily("parted", "# of a \\ and\na second line.", labels=("name",))
            for number in range(SAMPLES):
                family.add_metric((f"{part}-{number} \n# EOF {'x' * 100}",), number)
            yield family
        yield GaugeMetricFamily("zlast", "One.", value=1)


@asynccontextmanager
async def serving(collector: Collector) -> AsyncIterator[httpx.AsyncClient]:
    registry = CollectorRegistry()
    registry.register(collector)
    server = web.HttpServer(web.create_app(registry, lambda: True), "127.0.0.1", 0)
    async with asyncio.timeout(HANG_SECONDS):
        url = f"http://127.0.0.1:{await server.start()}"
        try:
            async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
                yield client
        finally:
            await server.stop()


class Whole(Collector):
    """The same families, each in one piece."""

    def collect(self) -> Iterable[Metric]:
        """Return them."""
        first, whole, *parts, last = InParts().collect()
        for part in parts:
            whole.samples.extend(part.samples)
        return first, whole, last


async def test_a_family_in_parts_is_one_family_on_the_page() -> None:
    async with serving(InParts()) as client:
        page = (await client.get("/metrics")).content
    assert len(page) > 2 * SLICE_BYTES
    assert page == generate_latest(Whole())
    families = {family.name: family for family in text_string_to_metric_families(page.decode())}
    assert len(families["parted"].samples) == PARTS * SAMPLES


async def test_openmetrics_ends_once() -> None:
    async with serving(InParts()) as client:
        page = (await client.get("/metrics", headers=OPENMETRICS)).content
    encode, _ = choose_encoder(OPENMETRICS["accept"])
    assert page == encode(Whole())
    assert page.count(b"\n# EOF\n") == 1


class Long(InParts):
    """A page that fits into no socket's buffers, and how often somebody began to be shown it."""

    def __init__(self) -> None:
        self.begun = 0

    def collect(self) -> Iterable[Metric]:
        """Yield the same family again and again."""
        self.begun += 1
        _, parted, *_ = super().collect()
        for _ in range(200):
            yield parted


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
