"""The HTTP client of the sources, against servers that misbehave on real sockets."""

import asyncio
import gzip
import inspect
import ssl
import traceback
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources.query_client import QueryClient
from keda_gpu_scaler.transport.http_client import Client, HttpAnswer, printable
from tests.support import http_replies as web
from tests.support.http_replies import HttpServer
from tests.support.pki import Pki

SECRET = "s3cr3t-of-the-test"
BOUND_SECONDS = 30.0
"""Far above the timeout of any client here: only a test that hangs reaches it."""
ONE_MIB = 2**20


def settings(url: str = "http://127.0.0.1:1", **given: object) -> PrometheusSettings:
    return PrometheusSettings.model_validate({"url": url, "timeout": "20s", **given})


@asynccontextmanager
async def connected(url: str, **given: object) -> AsyncIterator[Client]:
    made = QueryClient("default", settings(url, **given))
    try:
        yield made
    finally:
        await made.close()
        await web.generators_closed()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[HttpServer]:
    async with HttpServer(web.says("{}")) as running:
        yield running


# Answers


JSON = "application/json"


def packed(body: bytes, encoding: str = "gzip") -> web.Reply:
    return web.says(body, content_encoding=encoding)


async def bare(_: web.Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (web.says("hello", 200, "text/plain"), HttpAnswer(200, "text/plain", b"hello")),
        (
            web.says("out of order", 500, "text/plain"),
            HttpAnswer(500, "text/plain", b"out of order"),
        ),
        (bare, HttpAnswer(204, "no content type", b"")),
        (packed(gzip.compress(b"hello " * 1000)), HttpAnswer(200, JSON, b"hello " * 1000)),
        (packed(b""), HttpAnswer(200, JSON, b"")),
    ],
)
async def test_a_whole_answer_comes_back_whole_whatever_its_status(
    server: HttpServer, reply: web.Reply, expected: HttpAnswer
) -> None:
    server.reply = reply
    async with connected(server.url) as made:
        assert await made.fetch(f"{server.url}/a/path") == expected
    (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/a/path")
    assert request.headers["user-agent"] == "keda-gpu-scaler"
    assert request.headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize("location", ["/elsewhere", "https://[broken", "javascript:0"])
async def test_a_redirect_is_not_followed(server: HttpServer, location: str) -> None:
    server.reply = web.says("", 302, location=location)
    async with connected(server.url) as made:
        try:
            assert (await made.fetch(server.url)).status == 302
        except errors.SourceUnreachableError as error:
            assert "URL" in str(error)  # noqa: PT017 - either is right
    assert len(server.requests) == 1


# Faults


async def ssh(_: web.Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")


async def echo(request: web.Request, writer: asyncio.StreamWriter) -> None:
    writer.write(f"GET {request.path} HTTP/1.1\r\n\r\n".encode())


HELLO = gzip.compress(b"hello " * 9)
TIMEOUT, MALFORMED = errors.SourceTimeoutError, errors.SourceMalformedError
UNREACHABLE = errors.SourceUnreachableError


@pytest.mark.parametrize(
    ("reply", "fault", "words"),
    [
        (web.hangs, TIMEOUT, "no answer within 0.3 s"),
        (web.stalls, TIMEOUT, "no answer within 0.3 s"),
        (web.drips, TIMEOUT, "no answer within 0.3 s"),
        (web.cuts(b'{"status":'), UNREACHABLE, "peer closed connection without sending complete"),
        (web.closes, UNREACHABLE, "Server disconnected without sending a response"),
        (ssh, UNREACHABLE, ""),
        (echo, UNREACHABLE, "illegal status line"),
        (packed(b"not gzip at all"), MALFORMED, "undecodable answer: "),
        (packed(HELLO[:-1]), MALFORMED, "an answer whose compression is cut"),
        (packed(HELLO[:20]), MALFORMED, "an answer whose compression is cut"),
        (packed(HELLO * 2), MALFORMED, "an answer that goes on after its compression"),
    ],
)
async def test_an_answer_that_is_not_whole_is_an_error_that_says_so_without_the_request(
    server: HttpServer, reply: web.Reply, fault: type[errors.SourceError], words: str
) -> None:
    server.reply = reply
    async with connected(server.url, timeout="300ms" if fault is TIMEOUT else "20s") as made:
        with pytest.raises(fault) as raised:
            async with asyncio.timeout(BOUND_SECONDS):
                await made.fetch(f"{server.url}/?token={SECRET}")
    assert str(raised.value).startswith(words)
    assert SECRET not in str(raised.value)


async def test_other_tasks_run_between_the_parts_of_an_answer(server: HttpServer) -> None:
    async def dust(_: web.Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n")

    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    server.reply = dust
    async with connected(server.url) as made:
        counting = asyncio.create_task(count())
        answer = await made.fetch(server.url)
        counting.cancel()
    assert answer.body == b"x" * 20_000
    assert turns > 10_000


BOMB = gzip.compress(b"\0" * (64 * ONE_MIB))


TOO_MUCH = f"an answer of more than {ONE_MIB} bytes"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (packed(BOMB), TOO_MUCH),
        (web.endless(b"10000\r\n" + b"x" * 65536 + b"\r\n", web.CHUNKED), TOO_MUCH),
        (
            packed(gzip.compress(BOMB), "gzip, gzip"),
            "an answer with the encoding gzip, gzip instead of gzip",
        ),
        (packed(BOMB, "gzip,br\x80"), "an answer with the encoding gzip,br? instead of gzip"),
    ],
    ids=["a bomb", "endless", "twice", "unknown"],
)
async def test_the_bound_is_of_what_is_unpacked(
    server: HttpServer, reply: web.Reply, words: str
) -> None:
    server.reply = reply
    tracemalloc.start()
    async with connected(server.url, max_response_bytes=ONE_MIB) as made:
        with pytest.raises(errors.SourceMalformedError) as raised:
            async with asyncio.timeout(BOUND_SECONDS):
                await made.fetch(server.url)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert str(raised.value) == words
    assert peak < 8 * ONE_MIB


def offline(reply: Callable[[httpx.Request], httpx.Response]) -> Client:
    transport = httpx.MockTransport(reply)
    return Client(timeout_seconds=20, max_response_bytes=1000, transport=transport)


def _failures() -> Iterator[type[Exception]]:
    """Every exception of httpx, except the one that only reading a cookie jar raises."""
    for _, failure in inspect.getmembers(httpx, inspect.isclass):
        if issubclass(failure, Exception) and failure is not httpx.CookieConflict:
            yield failure


def _raised(failure: type[Exception]) -> Exception:
    """Make an exception of this class, whatever arguments its constructor requires."""
    wanted = inspect.signature(failure.__init__).parameters
    values = {"message": f"the words of {failure.__name__}", "request": None, "response": None}
    return failure(**{name: value for name, value in values.items() if name in wanted})


@pytest.mark.parametrize("failure", list(_failures()), ids=lambda failure: failure.__name__)
async def test_every_exception_of_httpx_becomes_a_source_error(failure: type[Exception]) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise _raised(failure)

    made = offline(fail)
    with pytest.raises(errors.SourceError) as raised:
        await made.fetch("http://prometheus")
    await made.close()
    assert str(raised.value)
    assert isinstance(raised.value, errors.SourceTimeoutError) == issubclass(
        failure, httpx.TimeoutException
    )


async def test_an_error_without_words_has_those_of_its_cause() -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("") from ssl.SSLError(1, "certificate required")

    made = offline(fail)
    with pytest.raises(errors.SourceUnreachableError, match="certificate required"):
        await made.fetch("http://prometheus")
    await made.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("as it is", "as it is"),
        ("two\n  lines\tand tabs", "two lines and tabs"),
        ("\x1b[31mred\x07", "?[31mred?"),
        ("x" * 257, "x" * 256 + "…"),
        ("x" * 256, "x" * 256),
    ],
)
def test_a_servers_words_are_one_short_printable_line(text: str, expected: str) -> None:
    assert printable(text) == expected


# Authentication


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        ({}, {"authorization": None}),
        ({"bearer_token": SECRET}, {"authorization": f"Bearer {SECRET}"}),
        (
            {"username": "Aladdin", "password": "open sesame"},  # RFC 7617's example
            {"authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},
        ),
        ({"headers": "X-Scope-OrgID=team-a,X-Key=k"}, {"x-scope-orgid": "team-a", "x-key": "k"}),
    ],
)
async def test_every_request_has_the_credentials_of_the_settings(
    server: HttpServer, given: dict[str, object], headers: dict[str, str | None]
) -> None:
    async with connected(server.url, **given) as made:
        await made.fetch(server.url)
        await made.fetch(server.url, {})
    for request in server.requests:
        assert {name: request.headers.get(name) for name in headers} == headers
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file or directory"),
        (SECRET.encode() + b"\xff", "does not hold one token of visible ASCII"),
    ],
    ids=["gone", "not UTF-8"],
)
async def test_a_file_without_a_token_is_named_and_not_shown_and_may_come_back(
    server: HttpServer, tmp_path: Path, content: bytes | None, words: str
) -> None:
    token = tmp_path / "token"
    token.write_text(SECRET)
    async with connected(server.url, bearer_token_file=token) as made:
        token.unlink()
        if content is not None:
            token.write_bytes(content)
        with pytest.raises(errors.SourceUnreachableError) as raised:
            await made.fetch(server.url)
        assert not server.requests
        for written in ("second", "third\n"):
            token.write_text(written)  # at once: no clock of a file system may matter
            await made.fetch(server.url)
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer second", "Bearer third"]
    assert str(raised.value) == f"the bearer token file {token} {words}"
    assert SECRET not in shown(raised.value)


@pytest.mark.parametrize(
    "given",
    [
        {"bearer_token": SECRET},
        {"username": "user", "password": SECRET},
        {"headers": {"X-Key": SECRET}},
        {"headers": {"X-Key": f" {SECRET}"}},  # which HTTP refuses
    ],
)
async def test_no_error_shows_a_secret(server: HttpServer, given: dict[str, object]) -> None:
    async with connected(server.url, timeout="200ms", **given) as made:
        for server.reply in (web.hangs, web.closes, web.cuts(b"x")):
            with pytest.raises(errors.SourceError) as raised:
                await made.fetch(server.url)
            assert SECRET not in shown(raised.value)


def shown(error: Exception) -> str:
    """Return all that a log could show of an error, its causes included."""
    return "".join(traceback.format_exception(error))


# TLS


@asynccontextmanager
async def secured(pki: Pki, *, mutual: bool = False) -> AsyncIterator[HttpServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pki.ca.issue_cert("127.0.0.1").configure_cert(context)
    if mutual:
        pki.ca.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    async with HttpServer(web.says("secured"), tls=context) as running:
        yield running


async def test_a_certificate_is_trusted_for_its_name_and_of_its_ca_alone(pki: Pki) -> None:
    ours, others = (
        {"ca_file": pki.file(f"{number}.pem", ca.cert_pem.bytes())}
        for number, ca in enumerate((pki.ca, pki.other))
    )
    # OpenSSL's code for an error, and the line of Python's source, are left out.
    untrusted = "^TLS: certificate verify failed: [a-z ]+$"
    async with secured(pki) as server:
        async with connected(server.url, **ours) as made:
            assert (await made.fetch(server.url)).body == b"secured"
            with pytest.raises(UNREACHABLE, match=r"^TLS: .*Hostname mismatch.*'localhost'"):
                await made.fetch(f"https://localhost:{server.port}")
        for given in ({}, others):
            async with connected(server.url, **given) as made:
                with pytest.raises(UNREACHABLE, match=untrusted):
                    await made.fetch(server.url)


async def test_a_client_certificate_is_shown_to_the_server(pki: Pki) -> None:
    issued = pki.ca.issue_cert("scaler@example.org")
    cert, key = pki.pair(issued)
    both = pki.file("both.pem", issued.private_key_and_cert_chain_pem.bytes())
    async with secured(pki, mutual=True) as server:
        for files in ({"cert_file": cert, "key_file": key}, {"cert_file": both}):
            async with connected(server.url, ca_file=pki.ca_file, **files) as made:
                assert (await made.fetch(server.url)).body == b"secured"


async def test_large_answers_are_read_in_turn() -> None:
    """An answer and what is made of it take much memory: not those of all readers at a time."""
    begun = asyncio.Event()

    async def reply(request: web.Request, writer: asyncio.StreamWriter) -> None:
        begun.set()
        await web.says("x" * 3 * ONE_MIB)(request, writer)

    async with HttpServer(reply) as server, connected(server.url) as client:

        async def read() -> int:
            with client.turn():
                return len((await client.fetch(server.url)).body)

        with client.turn():
            assert len((await client.fetch(server.url)).body) == 3 * ONE_MIB
            begun.clear()
            second = asyncio.create_task(read())
            await begun.wait()
            small = await client.fetch(server.url)
            assert small.body
            assert not second.done()
        async with asyncio.timeout(BOUND_SECONDS):
            assert await second == 3 * ONE_MIB
