"""The HTTP server's life, its bounds and its TLS, over real sockets."""

import asyncio
import contextlib
import itertools
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trustme
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from keda_gpu_scaler import web
from keda_gpu_scaler.transport.certificates import Certificate
from keda_gpu_scaler.transport.http_server import Bounds
from tests.support import certificates
from tests.support.connections import Streams, connected

GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
SOON, LATE = 0.2, 3600.0
HANG_SECONDS = 30


async def _ok(_request: object) -> PlainTextResponse:
    return PlainTextResponse("ok")


@asynccontextmanager
async def serving(
    bounds: Bounds = Bounds(),  # noqa: B008 - an immutable value
    app: ASGIApp | None = None,
    certificate: Callable[[], Certificate] | None = None,
    host: str = "127.0.0.1",
) -> AsyncIterator[int]:
    """Serve on a free port; the whole test is bounded in time."""
    route = Route("/", _ok) if app is None else Mount("/", app)
    server = web.HttpServer(Starlette(routes=[route]), host, 0, certificate, bounds)
    async with asyncio.timeout(HANG_SECONDS):
        port = await server.start()
        try:
            yield port
        finally:
            await server.stop()


async def answered(streams: Streams) -> bytes:
    """Send a request, and return the first line of the answer; its body is read as well."""
    reader, writer = streams
    writer.write(GET)
    line = await reader.readline()
    await reader.readuntil(b"\r\n\r\nok")
    return line


async def ended(reader: asyncio.StreamReader) -> bool:
    """Wait until the server has closed the connection without another word."""
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


# Its life


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost"])
async def test_it_listens_on_every_address_or_on_one(host: str) -> None:
    async with serving(host=host) as port, connected(port) as streams:
        assert await answered(streams) == OK


async def test_connections_without_an_open_request_do_not_hold_up_the_stop() -> None:
    async with contextlib.AsyncExitStack() as stack:
        async with serving(Bounds(shutdown_seconds=int(LATE))) as port:
            silent, _ = await stack.enter_async_context(connected(port))
            idle = await stack.enter_async_context(connected(port))
            assert await answered(idle) == OK
        assert await ended(silent)


async def test_a_client_that_does_not_read_holds_up_the_stop_within_a_bound() -> None:
    begun = asyncio.Event()

    async def endless(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.set()
        while True:
            await send({"type": "http.response.body", "body": b" " * 2**20, "more_body": True})

    async with serving(Bounds(shutdown_seconds=1), endless) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET)
        await begun.wait()
    writer.close()


# Its bounds


async def test_silent_connections_make_room_for_one_with_a_request() -> None:
    bounds = Bounds(connections=4, request_seconds=LATE)
    async with serving(bounds) as port, contextlib.AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(connected(port)) for _ in range(12)]
        kept = await stack.enter_async_context(connected(port))
        assert await answered(kept) == OK
        cut = [asyncio.create_task(ended(reader)) for reader, _ in silent]
        for end in itertools.islice(asyncio.as_completed(cut), 9):
            assert await end
        assert await answered(kept) == OK
        for task in cut:
            task.cancel()
        await asyncio.gather(*cut, return_exceptions=True)


async def test_of_many_requests_those_that_wait_longest_make_room() -> None:
    bounds = Bounds(connections=1, request_seconds=LATE)
    async with serving(bounds) as port, connected(port) as old:
        assert await answered(old) == OK
        async with connected(port) as (reader, _):
            assert await ended(reader)  # it has sent no request
        async with connected(port) as new:
            assert await answered(new) == OK
            assert await ended(old[0])
            assert await answered(new) == OK


@pytest.mark.parametrize("sent", [b"", b"G", GET[:-2]])
async def test_a_head_that_does_not_end_is_cut(sent: bytes) -> None:
    bounds = Bounds(request_seconds=SOON)
    async with serving(bounds) as port, connected(port) as (reader, writer):
        writer.write(sent)
        assert await ended(reader)


async def test_a_client_that_does_not_read_the_answer_is_cut() -> None:
    sent = asyncio.Event()

    async def large(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(64):
            await send({"type": "http.response.body", "body": b" " * 2**20, "more_body": True})
        sent.set()

    async with serving(Bounds(request_seconds=SOON), large) as port, connected(port) as (_, writer):
        writer.write(GET)
        await sent.wait()


async def test_a_connection_whose_requests_go_on_is_kept() -> None:
    bounds = Bounds(request_seconds=2 * SOON)
    async with serving(bounds) as port, connected(port) as kept:
        assert await answered(kept) == OK
        async with connected(port) as (silent, _):
            while not silent.at_eof():
                assert await answered(kept) == OK
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(silent.read(1), SOON / 10)


CHUNKED = b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("sent", [CHUNKED, CHUNKED + b"1\r\nx\r\n" * 10_000])
async def test_a_body_in_chunks_is_refused_before_any_chunk_is_read(sent: bytes) -> None:
    async def unreachable(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"read"})

    async with serving(app=unreachable) as port, connected(port) as (reader, writer):
        writer.write(sent)
        assert await reader.readline() == b"HTTP/1.1 400 Bad Request\r\n"
        await reader.readuntil(b"A body needs a Content-Length.")


async def test_the_body_of_an_answer_does_not_wait_until_its_head_is_confirmed() -> None:
    server = web.HttpServer(Starlette(routes=[Route("/", _ok)]), "127.0.0.1", 0)
    async with asyncio.timeout(HANG_SECONDS):
        async with connected(await server.start()) as streams:
            assert await answered(streams) == OK
            (connection,) = server.server_state.connections
            accepted = connection.transport.get_extra_info("socket")
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        await server.stop()


# Its TLS


class Rotating:
    """The certificate that a server shows at the moment."""

    def __init__(self) -> None:
        self.ca = trustme.CA()
        self.rotate()

    def rotate(self) -> None:
        """Issue another one."""
        leaf = self.ca.issue_cert(certificates.HOST)
        self.now = Certificate(certificates.chain(leaf), certificates.key_of(leaf), None, {})

    def __call__(self) -> Certificate:
        """Return it."""
        return self.now

    def trusting(self) -> ssl.SSLContext:
        """Return a client's context."""
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        return context


def shown(writer: asyncio.StreamWriter) -> str:
    """Return the server's own certificate as the client sees it, in PEM."""
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return ssl.DER_cert_to_PEM_cert(der)


async def test_tls_shows_the_current_certificate_and_leaves_open_connections_alone() -> None:
    rotating = Rotating()
    trusting = rotating.trusting()
    async with (
        serving(certificate=rotating) as port,
        connected(port, trusting) as old,
    ):
        assert await answered(old) == OK
        first = rotating.now
        rotating.rotate()
        async with connected(port, trusting) as new:
            assert await answered(new) == OK
            assert shown(new[1]) in rotating.now.chain.decode()
        assert await answered(old) == OK
        assert shown(old[1]) in first.chain.decode()
