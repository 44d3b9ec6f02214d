"""The HTTP server's bounds and its TLS, over real sockets."""

import asyncio
import contextlib
import socket
import ssl
import struct
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import pytest
import trustme
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from keda_gpu_scaler import web
from keda_gpu_scaler.transport.certificates import Certificate
from keda_gpu_scaler.transport.server import Bounds
from tests.support import certificates

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
SOON, LATE = 0.1, 3600.0
HANG_SECONDS = 30


async def _ok(_request: object) -> PlainTextResponse:
    return PlainTextResponse("ok")


@asynccontextmanager
async def serving(
    bounds: Bounds,
    app: ASGIApp | None = None,
    certificate: Callable[[], Certificate] | None = None,
) -> AsyncIterator[int]:
    """Serve on a free port; the whole test is bounded in time."""
    route = Route("/", _ok) if app is None else Mount("/", app)
    server = web.HttpServer(Starlette(routes=[route]), "127.0.0.1", 0, certificate, bounds)
    async with asyncio.timeout(HANG_SECONDS):
        port = await server.start()
        try:
            yield port
        finally:
            await server.stop()


@asynccontextmanager
async def connected(port: int, context: ssl.SSLContext | None = None) -> AsyncIterator[Streams]:
    name = certificates.HOST if context else None
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname=name
    )
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def answered(streams: Streams) -> bytes:
    """Ask, and return the first line of the answer; its body is read as well."""
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


async def test_those_who_send_nothing_keep_nobody_out_for_long() -> None:
    bounds = Bounds(connections=4, head_seconds=SOON, next_head_seconds=LATE)
    async with serving(bounds) as port, contextlib.AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(connected(port)) for _ in range(4)]
        assert all([await ended(reader) for reader, _ in silent])
        await answered_at_last(stack, port)


async def test_one_more_connection_than_there_may_be_is_refused() -> None:
    bounds = Bounds(connections=1, head_seconds=LATE)
    async with serving(bounds) as port, connected(port) as first:
        assert await answered(first) == OK
        async with connected(port) as (reader, writer):
            writer.write(GET)
            assert await reader.readline() == b"HTTP/1.1 503 Service Unavailable\r\n"


@pytest.mark.parametrize("begun", [b"G", GET[:-2]])
async def test_a_head_that_does_not_end_is_not_waited_for(begun: bytes) -> None:
    async with serving(Bounds(head_seconds=SOON)) as port, connected(port) as (reader, writer):
        writer.write(begun)
        assert await ended(reader)


async def test_neither_is_the_head_of_a_later_request() -> None:
    bounds = Bounds(head_seconds=LATE, next_head_seconds=SOON)
    async with serving(bounds) as port, connected(port) as (reader, writer):
        assert await answered((reader, writer)) == OK
        writer.write(GET[:-2])
        assert await ended(reader)


async def test_requests_that_come_in_time_share_a_connection() -> None:
    bounds = Bounds(head_seconds=SOON, next_head_seconds=LATE)
    async with serving(bounds) as port, contextlib.AsyncExitStack() as stack:
        kept = await answered_at_last(stack, port)
        silent, _ = await stack.enter_async_context(connected(port))
        assert await ended(silent)  # the time for a first request is over
        assert await answered(kept) == OK


async def test_requests_that_come_at_once_are_answered_in_turn() -> None:
    async with serving(Bounds()) as port, connected(port) as (reader, writer):
        writer.write(GET * 3)
        for _ in range(3):
            assert await reader.readline() == OK
            await reader.readuntil(b"\r\n\r\nok")


async def test_whoever_does_not_read_the_answer_is_not_waited_for() -> None:
    sent = asyncio.Event()

    async def endless(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(64):
            await send({"type": "http.response.body", "body": b" " * 2**20, "more_body": True})
        sent.set()

    async with (
        serving(Bounds(next_head_seconds=SOON), endless) as port,
        connected(port) as (_, ask),
    ):
        ask.write(GET)
        await sent.wait()


async def test_the_end_does_not_wait_for_whoever_does_not_read() -> None:
    begun, size = asyncio.Event(), 64 * 2**20

    async def large(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.set()
        await send({"type": "http.response.body", "body": b" " * size, "more_body": True})

    async with contextlib.AsyncExitStack() as stack:
        async with serving(Bounds(shutdown_seconds=1), large) as port:
            reader, ask = await stack.enter_async_context(connected(port))
            ask.write(GET)
            await begun.wait()
        with contextlib.suppress(ConnectionResetError):
            assert len(await reader.read()) < size


class Rotating:
    """The certificate that a server shows at the moment."""

    def __init__(self) -> None:
        self.ca = trustme.CA()
        self.rotate()

    def rotate(self) -> None:
        """Issue another one."""
        leaf = self.ca.issue_cert(certificates.HOST)
        self.now = Certificate(certificates.chain(leaf), certificates.key_of(leaf), None, 0, 0)

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


async def test_tls_shows_the_certificate_of_the_moment_and_leaves_open_connections_alone() -> None:
    rotating = Rotating()
    trusting = rotating.trusting()
    async with serving(Bounds(), certificate=rotating) as port, connected(port, trusting) as old:
        assert await answered(old) == OK
        first = rotating.now
        rotating.rotate()
        async with connected(port, trusting) as new:
            assert await answered(new) == OK
            assert shown(new[1]) in rotating.now.chain.decode()
        assert await answered(old) == OK
        assert shown(old[1]) in first.chain.decode()


async def test_a_connection_without_tls_is_closed() -> None:
    async with serving(Bounds(), certificate=Rotating()) as port, connected(port) as (reader, ask):
        ask.write(GET)
        assert await ended(reader)


async def test_those_who_are_silent_behind_tls_are_not_waited_for_either() -> None:
    rotating = Rotating()
    bounds = Bounds(head_seconds=SOON)
    async with (
        serving(bounds, certificate=rotating) as port,
        connected(port, rotating.trusting()) as (reader, _),
    ):
        assert await ended(reader)


async def test_those_who_begin_no_handshake_keep_nobody_out_for_long() -> None:
    rotating = Rotating()
    bounds = Bounds(connections=4, handshake_seconds=SOON)
    async with (
        serving(bounds, certificate=rotating) as port,
        contextlib.AsyncExitStack() as stack,
    ):
        silent = [await stack.enter_async_context(connected(port)) for _ in range(12)]
        assert all([await ended(reader) for reader, _ in silent])
        await answered_at_last(stack, port, rotating.trusting())


async def test_one_more_connection_than_there_may_be_is_closed_before_its_handshake() -> None:
    rotating = Rotating()
    bounds = Bounds(connections=2, handshake_seconds=LATE)
    async with (
        serving(bounds, certificate=rotating) as port,
        connected(port, rotating.trusting()) as kept,
        connected(port) as (_, first),
        contextlib.AsyncExitStack() as stack,
    ):
        assert await answered(kept) == OK
        async with connected(port) as (reader, _):
            assert await ended(reader)
        first.close()
        await answered_at_last(stack, port, rotating.trusting())


async def test_a_silent_connection_does_not_hold_up_the_end() -> None:
    bounds = Bounds(handshake_seconds=LATE, shutdown_seconds=int(LATE))
    rotating = Rotating()
    async with contextlib.AsyncExitStack() as stack:
        async with serving(bounds, certificate=rotating) as port:
            reader, _ = await stack.enter_async_context(connected(port))
            async with connected(port, rotating.trusting()) as streams:
                assert await answered(streams) == OK
        assert await ended(reader)


async def test_those_who_are_gone_before_their_handshake_hold_no_place() -> None:
    rotating = Rotating()
    bounds = Bounds(connections=1, handshake_seconds=LATE)
    async with (
        serving(bounds, certificate=rotating) as port,
        contextlib.AsyncExitStack() as stack,
    ):
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port)) as gone:
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await answered_at_last(stack, port, rotating.trusting())


async def answered_at_last(
    stack: contextlib.AsyncExitStack, port: int, context: ssl.SSLContext | None = None
) -> Streams:
    """Ask until there is room and we are in time; the whole test is bounded in time."""
    while True:
        with contextlib.suppress(ConnectionError, EOFError):
            streams = await stack.enter_async_context(connected(port, context))
            assert await answered(streams) == OK
            return streams


async def test_a_request_that_comes_with_the_end_of_the_handshake_is_answered() -> None:
    rotating = Rotating()
    async with serving(Bounds(), certificate=rotating) as port:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = rotating.trusting().wrap_bio(incoming, outgoing, server_hostname=certificates.HOST)
        async with connected(port) as (reader, writer):
            with contextlib.suppress(ssl.SSLWantReadError):
                client.do_handshake()
            writer.write(outgoing.read())
            while not await shaken(client, incoming, reader):
                writer.write(outgoing.read())
            client.write(GET)
            writer.write(outgoing.read())  # the last of the handshake and the request, in one
            assert (await received(client, incoming, reader)).startswith(OK)


async def shaken(
    client: ssl.SSLObject, incoming: ssl.MemoryBIO, reader: asyncio.StreamReader
) -> bool:
    """Go on with a handshake by hand; True when the client's side has ended."""
    incoming.write(await reader.read(65536))
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


async def received(
    client: ssl.SSLObject, incoming: ssl.MemoryBIO, reader: asyncio.StreamReader
) -> bytes:
    """Read what comes first."""
    while True:
        incoming.write(await reader.read(65536))
        with contextlib.suppress(ssl.SSLWantReadError):
            return client.read()


async def test_tls_1_1_is_refused() -> None:
    rotating = Rotating()
    old = rotating.trusting()
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        old.minimum_version = ssl.TLSVersion.TLSv1_1
    async with serving(Bounds(), certificate=rotating) as port:
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        async with connected(port, old) as streams:
            assert await answered(streams) == OK
        with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await stuck(port, old)


async def stuck(port: int, context: ssl.SSLContext) -> None:
    """Connect, for nothing."""
    async with connected(port, context):
        pass


WITHOUT_DESCRIPTORS = """
import asyncio, logging, os, resource, sys
from starlette.applications import Starlette
from keda_gpu_scaler import web

async def serve():
    server = web.HttpServer(Starlette(), "127.0.0.1", 0)
    port = await server.start()
    taken = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken + 1, taken + 1))
    print(port, flush=True)
    await server.ended()

logging.basicConfig(format="%(name)s", stream=sys.stdout)
asyncio.run(serve())
"""
"""Serves with two file descriptors left (one was open to count them), and prints whose lines."""


@pytest.mark.slow
async def test_without_file_descriptors_there_is_one_line_for_each_time_it_tries_again() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WITHOUT_DESCRIPTORS, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(HANG_SECONDS):
        try:
            port = int(await process.stdout.readline())
            async with contextlib.AsyncExitStack() as stack:
                for _ in range(5):
                    await stack.enter_async_context(connected(port))
                assert await process.stdout.readline() == b"asyncio\n"
            async with connected(port) as (reader, writer):
                writer.write(GET)
                assert await reader.readline() == b"HTTP/1.1 404 Not Found\r\n"
        finally:
            process.kill()
        said = (await process.stdout.read()).splitlines()
        await process.wait()
    # It tries again after a second.
    assert said.count(b"asyncio") < HANG_SECONDS
