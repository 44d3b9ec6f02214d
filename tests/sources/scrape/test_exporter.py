"""One exporter over a real socket: a good page, and everything else that a port can answer."""

import asyncio
import gzip
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import ScrapeSettings
from keda_gpu_scaler.sources.scrape.source import fetch_page
from tests.support import http_replies as web
from tests.support.http_replies import HttpServer

UTIL = "DCGM_FI_DEV_GPU_UTIL"
GOOD = f'# TYPE {UTIL} gauge\n{UTIL}{{gpu="0",pod="bert-0"}} 50\n'
FOREIGN = b'foo{cpu="0",mode="idle"} 123.4 1700000000000\n'
TLS = httpx.create_ssl_context()
BOUND_SECONDS = 30.0
"""Far above the timeout of any exporter here: only a test that hangs reaches it."""


@pytest_asyncio.fixture
async def server() -> AsyncIterator[HttpServer]:
    async with HttpServer(web.says(GOOD, content_type="text/plain")) as running:
        yield running


async def page(url: str, **given: object) -> str:
    settings = ScrapeSettings.model_validate({"targets": url, "interval": "20s", **given})
    try:
        async with asyncio.timeout(BOUND_SECONDS):
            return (await fetch_page(url, settings, TLS)).decode()
    finally:
        await web.generators_closed()


async def refusal(url: str, fault: type[errors.SourceError], **given: object) -> str:
    with pytest.raises(fault) as raised:
        await page(url, **given)
    return str(raised.value)


async def test_a_page_is_read_compressed_or_not(server: HttpServer) -> None:
    assert await page(server.url) == GOOD
    server.reply = web.says(gzip.compress(GOOD.encode()), content_encoding="gzip")
    assert await page(server.url) == GOOD

    assert [one.headers["accept-encoding"] for one in server.requests] == ["gzip", "gzip"]


@pytest.mark.parametrize("status", [204, 302, 500])
async def test_another_status_is_refused_in_the_exporters_words(
    server: HttpServer, status: int
) -> None:
    server.reply = web.says("no GPU\nto be found", status)
    words = await refusal(server.url, errors.SourceRefusedError)

    assert words == (f"HTTP {status}: no GPU to be found" if status != 204 else "HTTP 204: ")


INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "head"),
    [
        pytest.param(b"a: b\r\n", b"", id="headers"),
        pytest.param(INTERIM, b"\r\n" + INTERIM, id="interim answers"),
        pytest.param(b"1\r\n\n\r\n", web.CHUNKED, id="tiny chunks"),
        pytest.param(b"a: b\r\n", web.CHUNKED + b"0\r\n", id="trailers"),
        pytest.param(FOREIGN, b"Content-Length: 1000000000000\r\n\r\n", id="a length"),
        pytest.param(b"x", web.CHUNKED + b"fffffff\r\n", id="one line"),
    ],
)
async def test_an_answer_that_never_ends_does_and_others_are_answered_meanwhile(
    server: HttpServer, part: bytes, head: bytes
) -> None:
    server.reply = web.endless(part * 100, head)
    async with HttpServer(web.says(GOOD)) as one:
        bad = asyncio.create_task(refusal(server.url, errors.SourceError, timeout="1s"))
        while not bad.done():
            assert await page(one.url) == GOOD
        assert await bad

    assert one.requests
