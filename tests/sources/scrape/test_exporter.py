"""One exporter over a real socket: a good page, and everything else that a port can answer."""

import asyncio
import gzip
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import pytest_asyncio

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import ScrapeSettings
from keda_gpu_scaler.sources.scrape.exporter import Exporter
from tests.support import gpu_samples
from tests.support import http_replies as web
from tests.support.gpu_samples import Sample
from tests.support.http_replies import HttpServer

UTIL = "DCGM_FI_DEV_GPU_UTIL"
GOOD = f'# TYPE {UTIL} gauge\n{UTIL}{{gpu="0",pod="bert-0"}} 50\n'
FOREIGN = b'foo{cpu="0",mode="idle"} 123.4 1700000000000\n'
SAMPLES = [({"__name__": UTIL, "gpu": "0", "pod": "bert-0"}, 50.0)]
SECRET = "s3cr3t-of-the-test"  # noqa: S105 - guards nothing
BOUND_SECONDS = 30.0
"""Far above the timeout of any exporter here: only a test that hangs reaches it."""
MIB = 2**20


@pytest_asyncio.fixture
async def server() -> AsyncIterator[HttpServer]:
    async with HttpServer(web.says(GOOD, content_type="text/plain")) as running:
        yield running


@asynccontextmanager
async def asked(url: str, **given: object) -> AsyncIterator[Exporter]:
    settings = ScrapeSettings.model_validate({"targets": url, "interval": "20s", **given})
    exporter = Exporter(url, settings, httpx.create_ssl_context())
    try:
        async with asyncio.timeout(BOUND_SECONDS):
            yield exporter
    finally:
        await exporter.close()
        await web.generators_closed()


async def samples(url: str, **given: object) -> list[Sample]:
    async with asked(url, **given) as exporter:
        return gpu_samples.shown(await exporter.samples())


async def refusal(url: str, fault: type[errors.SourceError], **given: object) -> str:
    async with asked(url, **given) as exporter:
        with pytest.raises(fault) as raised:
            await exporter.samples()
    return str(raised.value)


async def test_a_page_is_read_compressed_or_not(server: HttpServer) -> None:
    assert await samples(server.url) == SAMPLES
    server.reply = web.says(gzip.compress(GOOD.encode()), content_encoding="gzip")
    assert await samples(server.url) == SAMPLES

    assert [one.headers["accept-encoding"] for one in server.requests] == ["gzip", "gzip"]


async def test_each_page_is_read_by_itself(server: HttpServer) -> None:
    async with asked(server.url) as exporter:
        server.reply = web.says(GOOD[:-5])
        with pytest.raises(errors.SourceMalformedError, match="the text is cut"):
            await exporter.samples()
        server.reply = web.says(GOOD)
        assert [gpu_samples.shown(await exporter.samples()) for _ in range(2)] == [SAMPLES] * 2


class Connections:
    """Answers well, and knows which connection each request came over."""

    def __init__(self, answered: int) -> None:
        self.ports: list[int] = []
        self._answered = answered
        """How many requests over one connection have an answer; the next one ends it."""

    async def reply(self, request: web.Request, writer: asyncio.StreamWriter) -> None:
        """Answer, or end a connection that has had its answers."""
        self.ports.append(writer.get_extra_info("peername")[1])
        is_last = self.ports.count(self.ports[-1]) > self._answered
        await (web.closes if is_last else web.says(GOOD))(request, writer)


async def test_an_exporter_is_asked_over_one_connection(server: HttpServer) -> None:
    connections = Connections(answered=9)
    server.reply = connections.reply
    async with asked(server.url) as exporter:
        for _ in range(3):
            assert gpu_samples.shown(await exporter.samples()) == SAMPLES

    assert len(connections.ports) == 3
    assert len(set(connections.ports)) == 1


async def test_a_connection_that_was_closed_while_idle_is_no_failed_scrape(
    server: HttpServer,
) -> None:
    connections = Connections(answered=1)
    server.reply = connections.reply
    async with asked(server.url) as exporter:
        for _ in range(3):
            assert gpu_samples.shown(await exporter.samples()) == SAMPLES

    first, again, second, last, third = connections.ports
    assert (again, last) == (first, second)
    assert len({first, second, third}) == 3


async def test_an_exporter_that_closes_a_new_connection_is_asked_once(server: HttpServer) -> None:
    server.reply = web.closes
    words = await refusal(server.url, errors.SourceUnreachableError)

    assert "disconnected" in words
    assert len(server.requests) == 1


async def test_a_second_request_has_no_time_of_its_own(server: HttpServer) -> None:
    async with asked(server.url, timeout="300ms") as exporter:
        await exporter.samples()
        count = len(server.requests)

        async def closes_then_hangs(request: web.Request, writer: asyncio.StreamWriter) -> None:
            is_first = len(server.requests) == count + 1
            await (web.closes if is_first else web.hangs)(request, writer)

        server.reply = closes_then_hangs
        with pytest.raises(errors.SourceTimeoutError, match=r"no answer within 0\.3 s"):
            await exporter.samples()

    assert len(server.requests) == count + 2


@pytest.mark.parametrize("status", [204, 302, 404, 500])
async def test_another_status_is_refused_in_the_exporters_words(
    server: HttpServer, status: int
) -> None:
    server.reply = web.says("no GPU\nto be found", status)
    words = await refusal(server.url, errors.SourceRefusedError)

    assert words == (f"HTTP {status}: no GPU to be found" if status != 204 else "HTTP 204: ")


@pytest.mark.parametrize("status", [403, 500])
async def test_the_words_of_a_server_that_got_a_query_are_not_shown(
    server: HttpServer, status: int
) -> None:
    server.reply = web.says(f"no entry to /metrics?token={SECRET}", status)
    words = await refusal(f"{server.url}/metrics?token={SECRET}", errors.SourceRefusedError)

    assert words == f"HTTP {status}"


async def test_a_server_that_repeats_the_request_does_not_show_it(server: HttpServer) -> None:
    async def echo(request: web.Request, writer: asyncio.StreamWriter) -> None:
        writer.write(f"GET {request.path} HTTP/1.1\r\n\r\n".encode())

    server.reply = echo
    words = await refusal(f"{server.url}/metrics?token={SECRET}", errors.SourceUnreachableError)

    assert SECRET in server.requests[0].path
    assert words == "illegal status line"


@pytest.mark.parametrize("reply", [web.hangs, web.stalls, web.drips])
async def test_silence_ends_at_the_timeout(server: HttpServer, reply: web.Reply) -> None:
    server.reply = reply

    assert await refusal(server.url, errors.SourceTimeoutError, timeout="300ms") == (
        "no answer within 0.3 s"
    )


def endless(part: bytes, head: bytes) -> web.Reply:
    """Begin an answer with this head, and repeat a part of it for ever."""

    async def reply(_: web.Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + head)
        while True:
            writer.write(part * 100)
            await writer.drain()

    return reply


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(endless(b"a: b\r\n", b""), id="headers"),
        pytest.param(
            endless(b"HTTP/1.1 100 Continue\r\n\r\n", b"\r\nHTTP/1.1 100 Continue\r\n\r\n"),
            id="interim answers",
        ),
        pytest.param(endless(b"2d\r\n" + FOREIGN + b"\r\n", CHUNKED), id="lines"),
        pytest.param(endless(b"1\r\n\n\r\n", CHUNKED), id="tiny chunks"),
        pytest.param(endless(b"1;" + b"x" * 5000 + b"\r\n\n\r\n", CHUNKED), id="extensions"),
        pytest.param(endless(b"a: b\r\n", CHUNKED + b"0\r\n"), id="trailers"),
        pytest.param(endless(FOREIGN, b"Content-Length: 1000000000000\r\n\r\n"), id="a length"),
        pytest.param(endless(b"x", CHUNKED + b"fffffff\r\n"), id="one line"),
    ],
)
async def test_an_answer_that_never_ends_does_and_others_are_answered_meanwhile(
    server: HttpServer, reply: web.Reply
) -> None:
    server.reply = reply
    async with HttpServer(web.says(GOOD)) as one, asked(one.url) as good:
        bad = asyncio.create_task(refusal(server.url, errors.SourceError, timeout="1s"))
        while not bad.done():
            assert gpu_samples.shown(await good.samples()) == SAMPLES
        assert await bad

    assert one.requests


async def test_a_bomb_is_never_unpacked_beyond_its_bound(server: HttpServer) -> None:
    server.reply = web.says(gzip.compress(b"\n" * (64 * MIB)), content_encoding="gzip")
    tracemalloc.start()
    words = await refusal(server.url, errors.SourceMalformedError, max_response_bytes=MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert words == f"an answer of more than {MIB} bytes"
    assert peak < 4 * MIB
