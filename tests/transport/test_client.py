"""The HTTP client of the sources, against servers that misbehave on real sockets."""

import asyncio
import contextlib
import gzip
import inspect
import socket
import ssl
import traceback
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
import trustme
from hypothesis import example, given
from hypothesis import strategies as st

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources import connection
from keda_gpu_scaler.transport.client import PART_BYTES, Answer, Client
from tests.support import http_replies as web
from tests.support.http_replies import HttpServer
from tests.support.processes import free_port, until

SECRET = "s3cr3t-of-the-test"  # noqa: S105 - guards nothing
BOUND_SECONDS = 30.0
"""Far above the timeout of any client here: only a test that hangs reaches it."""
ONE_MIB = 2**20


def settings(url: str = "http://127.0.0.1:1", **given: object) -> PrometheusSettings:
    return PrometheusSettings.model_validate({"url": url, "timeout": "20s", **given})


@asynccontextmanager
async def connected(url: str, **given: object) -> AsyncIterator[Client]:
    made = connection.create_client(settings(url, **given))
    try:
        yield made
    finally:
        await made.close()
        await web.generators_closed()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[HttpServer]:
    async with HttpServer(web.says("{}")) as running:
        yield running


async def refusal(server: HttpServer, fault: type[errors.SourceError], **given: object) -> str:
    """Return the words of the error that a GET ends with, within its bound."""
    async with connected(server.url, **given) as made:
        with pytest.raises(fault) as raised:
            async with asyncio.timeout(BOUND_SECONDS):
                await made.get(server.url)
    return str(raised.value)


# Answers


async def test_a_whole_answer_comes_back_whole(server: HttpServer) -> None:
    server.reply = web.says("hello", 418, "text/plain")
    async with connected(server.url) as made:
        answer = await made.get(f"{server.url}/a/path")

    assert answer == Answer(418, "text/plain", b"hello")
    assert [(one.method, one.path) for one in server.requests] == [("GET", "/a/path")]
    assert server.requests[0].headers["user-agent"] == "keda-gpu-scaler"


async def test_a_form_is_posted(server: HttpServer) -> None:
    async with connected(server.url) as made:
        await made.post(server.url, {"query": 'up{job="é&="}', "time": "1.5"})

    (request,) = server.requests
    assert request.method == "POST"
    assert request.form == {"query": 'up{job="é&="}', "time": "1.5"}


async def test_an_answer_without_a_content_type_says_so(server: HttpServer) -> None:
    async def bare(_: web.Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    server.reply = bare
    async with connected(server.url) as made:
        answer = await made.get(server.url)

    assert answer == Answer(204, "no content type", b"")


async def test_an_error_status_is_an_answer(server: HttpServer) -> None:
    server.reply = web.says("out of order", 500, "text/plain")
    async with connected(server.url) as made:
        assert (await made.get(server.url)).status == 500


@pytest.mark.parametrize("location", ["/elsewhere", "https://[broken", "javascript:0"])
async def test_a_redirect_is_not_followed(server: HttpServer, location: str) -> None:
    server.reply = web.says("", 302, location=location)
    async with connected(server.url) as made:
        try:
            assert (await made.get(server.url)).status == 302
        except errors.SourceUnreachableError as error:
            assert "URL" in str(error)  # noqa: PT017 - either is right

    assert len(server.requests) == 1


async def test_a_compressed_answer_is_unpacked(server: HttpServer) -> None:
    server.reply = web.says(gzip.compress(b"hello " * 1000), content_encoding="gzip")
    async with connected(server.url) as made:
        assert (await made.get(server.url)).body == b"hello " * 1000

    assert server.requests[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize("status", [200, 500])
async def test_a_body_is_handed_on_in_small_parts_if_its_status_is_ok(
    server: HttpServer, status: int
) -> None:
    body, parts = b"hello " * 100_000, list[bytes]()
    async with connected(server.url) as made:
        for content, headers in ((body, {}), (gzip.compress(body), {"content_encoding": "gzip"})):
            server.reply = web.says(content, status, "text/plain", **headers)
            answer = await made.get(server.url, take=parts.append)
            assert b"".join(parts) + answer.body == body
            assert (answer.body == b"") == (status == 200)
            assert all(0 < len(part) <= PART_BYTES for part in parts)
            parts.clear()


async def test_a_compressed_body_may_arrive_byte_by_byte(server: HttpServer) -> None:
    async def reply(_: web.Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
        for byte in gzip.compress(b"hello " * 100):
            writer.write(b"1\r\n%c\r\n" % byte)
        writer.write(b"0\r\n\r\n")

    server.reply, parts = reply, list[bytes]()
    async with connected(server.url) as made:
        await made.get(server.url, take=parts.append)

    assert b"".join(parts) == b"hello " * 100
    assert all(parts)


async def test_what_takes_the_body_can_end_the_request(server: HttpServer) -> None:
    def refuse(_: bytes) -> None:
        raise errors.SourceMalformedError("enough")

    server.reply = server.endless
    async with connected(server.url) as made:
        with pytest.raises(errors.SourceMalformedError, match="enough"):
            await made.get(server.url, take=refuse)

    assert server.sent_bytes < 64 * ONE_MIB


# Faults


@pytest.mark.parametrize("reply", [web.hangs, web.stalls, web.drips])
async def test_silence_ends_at_the_clients_own_timeout(
    server: HttpServer, reply: web.Reply
) -> None:
    server.reply = reply
    words = await refusal(server, errors.SourceTimeoutError, timeout="300ms")

    assert words.startswith("no answer")


async def test_a_client_goes_on_after_a_timeout(server: HttpServer) -> None:
    server.reply = web.hangs
    async with connected(server.url, timeout="200ms") as made:
        for _ in range(3):
            with pytest.raises(errors.SourceTimeoutError):
                await made.get(server.url)
        server.reply = web.says("back")

        async def is_back() -> bool:
            with contextlib.suppress(errors.SourceTimeoutError):
                return (await made.get(server.url)).body == b"back"
            return False

        await until(is_back, BOUND_SECONDS, "it answers")


async def test_a_cut_answer_is_no_answer(server: HttpServer) -> None:
    server.reply = web.cuts(b'{"status":"success"}')
    words = await refusal(server, errors.SourceUnreachableError)

    assert "peer closed connection without sending complete message body" in words


async def test_a_connection_that_ends_without_an_answer_is_unreachable(server: HttpServer) -> None:
    server.reply = web.closes
    words = await refusal(server, errors.SourceUnreachableError)

    assert "Server disconnected without sending a response" in words


async def test_a_refused_connection_is_unreachable() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with connected(url) as made:
        with pytest.raises(errors.SourceUnreachableError, match="connection attempts failed"):
            await made.get(url)


async def test_what_is_no_http_is_unreachable(server: HttpServer) -> None:
    async def ssh(_: web.Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")

    server.reply = ssh
    assert await refusal(server, errors.SourceUnreachableError)


async def test_a_broken_compression_is_malformed(server: HttpServer) -> None:
    server.reply = web.says(b"not gzip at all", content_encoding="gzip")
    words = await refusal(server, errors.SourceMalformedError)

    assert words.startswith("undecodable answer: ")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(gzip.compress(b"hello")[:-1], "an answer whose compression is cut", id="end"),
        pytest.param(
            gzip.compress(b"hello " * 9)[:20], "an answer whose compression is cut", id="middle"
        ),
        pytest.param(
            gzip.compress(b"hello") * 2, "an answer that goes on after its compression", id="twice"
        ),
    ],
)
async def test_a_compression_that_is_cut_or_goes_on_is_malformed(
    server: HttpServer, body: bytes, words: str
) -> None:
    server.reply = web.says(body, content_encoding="gzip")

    assert await refusal(server, errors.SourceMalformedError) == words


async def test_an_empty_body_need_not_be_compressed(server: HttpServer) -> None:
    server.reply = web.says(b"", content_encoding="gzip")
    async with connected(server.url) as made:
        assert (await made.get(server.url)).body == b""


async def test_a_line_that_is_no_http_is_not_shown(server: HttpServer) -> None:
    async def echo(request: web.Request, writer: asyncio.StreamWriter) -> None:
        writer.write(f"GET {request.path} HTTP/1.1\r\n\r\n".encode())

    server.reply = echo
    async with connected(server.url) as made:
        with pytest.raises(errors.SourceUnreachableError, match=r"^illegal status line$"):
            await made.get(f"{server.url}/?token={SECRET}")


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
        answer = await made.get(server.url)
        counting.cancel()

    assert answer.body == b"x" * 20_000
    assert turns > 10_000


async def test_an_endless_answer_is_dropped_at_its_bound(server: HttpServer) -> None:
    server.reply = server.endless
    tracemalloc.start()
    words = await refusal(server, errors.SourceMalformedError, max_response_bytes=2 * ONE_MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert words == f"an answer of more than {2 * ONE_MIB} bytes"
    assert peak < 16 * ONE_MIB
    assert server.sent_bytes < 64 * ONE_MIB  # the sockets' buffers hold some of it


async def test_the_bound_holds_after_decompression(server: HttpServer) -> None:
    server.reply = web.says(gzip.compress(b"\0" * (64 * ONE_MIB)), content_encoding="gzip")
    tracemalloc.start()
    words = await refusal(server, errors.SourceMalformedError, max_response_bytes=ONE_MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert words == f"an answer of more than {ONE_MIB} bytes"
    assert peak < 8 * ONE_MIB


async def test_an_answer_of_exactly_the_bound_is_taken(server: HttpServer) -> None:
    server.reply = web.says("x" * 1000)
    async with connected(server.url, max_response_bytes=1000) as made:
        assert len((await made.get(server.url)).body) == 1000


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "deflate", "gzip,br\x80"])
async def test_a_compression_that_was_not_asked_for_is_refused_before_it_unfolds(
    server: HttpServer, encoding: str
) -> None:
    bomb = gzip.compress(gzip.compress(b"\0" * (64 * ONE_MIB)))
    server.reply = web.says(bomb, content_encoding=encoding)
    tracemalloc.start()
    words = await refusal(server, errors.SourceMalformedError, max_response_bytes=ONE_MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert words.startswith("an answer with the encoding ")
    assert words.isprintable()
    assert peak < 16 * ONE_MIB


@example("http://[::1")
@example("http://xn--")
@example("http://☃..x")
@given(url=st.from_regex(r"https?://[a-zé☃\[][-a-zé☃.\[\]:%]{0,19}(/[^\s]{0,9})?", fullmatch=True))
async def test_any_url_ends_in_an_answer_or_a_source_error(url: str) -> None:
    made = offline(lambda _: httpx.Response(200))
    try:
        assert (await made.get(url)).status == 200
    except errors.SourceUnreachableError as error:
        assert str(error)  # noqa: PT017 - either is right
    finally:
        await made.close()


def offline(reply: Callable[[httpx.Request], httpx.Response]) -> Client:
    transport = httpx.MockTransport(reply)
    return Client(
        httpx.AsyncClient(transport=transport), timeout_seconds=20, max_response_bytes=1000
    )


def _failures() -> Iterator[type[Exception]]:
    """Every exception of httpx, except the one that only reading a cookie jar raises."""
    for _, found in inspect.getmembers(httpx, inspect.isclass):
        if issubclass(found, Exception) and found is not httpx.CookieConflict:
            yield found


def _raised(failure: type[Exception]) -> Exception:
    """Make an exception of this class, whatever arguments its constructor requires."""
    wanted = inspect.signature(failure.__init__).parameters
    values = {"message": f"the words of {failure.__name__}", "request": None, "response": None}
    return failure(**{name: value for name, value in values.items() if name in wanted})


@pytest.mark.parametrize("failure", list(_failures()), ids=lambda found: found.__name__)
async def test_every_exception_of_httpx_becomes_a_source_error(failure: type[Exception]) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise _raised(failure)

    made = offline(fail)
    with pytest.raises(errors.SourceError) as raised:
        await made.get("http://prometheus")
    await made.close()

    assert str(raised.value)
    assert isinstance(raised.value, errors.SourceTimeoutError) == issubclass(
        failure, httpx.TimeoutException
    )


@pytest.mark.parametrize("failure", [OSError(5, "no such luck"), ssl.SSLError(1, "bad alert")])
async def test_an_error_of_the_system_becomes_a_source_error(failure: OSError) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise failure

    made = offline(fail)
    with pytest.raises(errors.SourceUnreachableError, match=r"no such luck|bad alert"):
        await made.get("http://prometheus")
    await made.close()


async def test_an_error_without_words_takes_those_of_its_cause() -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("") from ssl.SSLError(1, "tlsv13 alert certificate required")

    made = offline(fail)
    with pytest.raises(errors.SourceUnreachableError, match="certificate required"):
        await made.get("http://prometheus")
    await made.close()


async def test_an_error_without_any_words_is_named() -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("")

    made = offline(fail)
    with pytest.raises(errors.SourceUnreachableError, match=r"\AReadError\Z"):
        await made.get("http://prometheus")
    await made.close()


# Authentication


async def test_nothing_is_authenticated_unless_it_is_asked_for(server: HttpServer) -> None:
    async with connected(server.url) as made:
        await made.get(server.url)

    assert "authorization" not in server.requests[0].headers


async def test_a_bearer_token_is_sent_with_every_request(server: HttpServer) -> None:
    async with connected(server.url, bearer_token=SECRET) as made:
        await made.get(server.url)
        await made.post(server.url, {})

    assert [one.headers["authorization"] for one in server.requests] == [f"Bearer {SECRET}"] * 2


async def test_basic_authentication_is_sent(server: HttpServer) -> None:
    async with connected(server.url, username="Aladdin", password="open sesame") as made:  # noqa: S106 - RFC 7617's example
        await made.get(server.url)

    assert server.requests[0].headers["authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="


async def test_headers_of_a_tenant_are_sent(server: HttpServer) -> None:
    async with connected(server.url, headers="X-Scope-OrgID=team-a,X-Key=k") as made:
        await made.get(server.url)

    assert server.requests[0].headers["x-scope-orgid"] == "team-a"
    assert server.requests[0].headers["x-key"] == "k"


async def test_a_token_file_is_read_again_when_it_rotates(
    server: HttpServer, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with connected(server.url, bearer_token_file=token) as made:
        await made.get(server.url)
        token.write_text("second")  # at once: no clock of a file system may matter
        await made.get(server.url)
        (tmp_path / "new").write_text("third")
        (tmp_path / "new").replace(token)
        await made.get(server.url)

    sent = [one.headers["authorization"] for one in server.requests]
    assert sent == ["Bearer first", "Bearer second", "Bearer third"]


async def test_a_token_file_that_vanished_is_named_and_may_come_back(
    server: HttpServer, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(SECRET)
    async with connected(server.url, bearer_token_file=token) as made:
        token.unlink()
        with pytest.raises(errors.SourceUnreachableError) as raised:
            await made.get(server.url)
        token.write_text(SECRET)
        await made.get(server.url)

    words = f"the bearer token file {token} cannot be read: No such file or directory"
    assert str(raised.value) == words
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(f"{SECRET}\n{SECRET}".encode(), id="two lines"),
        pytest.param(f"{SECRET} x".encode(), id="two words"),
        pytest.param(f"{SECRET}é".encode(), id="not ASCII"),
        pytest.param(SECRET.encode() + b"\xff", id="not UTF-8"),
        pytest.param(SECRET.encode() + b"\0", id="binary"),
    ],
)
async def test_a_file_without_a_token_is_named_and_not_shown(
    server: HttpServer, tmp_path: Path, content: bytes
) -> None:
    token = tmp_path / "token"
    token.write_bytes(content)
    async with connected(server.url, bearer_token_file=token) as made:
        with pytest.raises(errors.SourceUnreachableError) as raised:
            await made.get(server.url)

    message = f"the bearer token file {token} does not hold one token of visible ASCII"
    assert str(raised.value) == message
    assert SECRET not in shown(raised.value)
    assert not server.requests


@pytest.mark.parametrize("fault", [web.hangs, web.closes, web.cuts(b"x")])
@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"bearer_token": SECRET}, id="bearer"),
        pytest.param({"username": "user", "password": SECRET}, id="basic"),
        pytest.param({"headers": {"X-Key": SECRET}}, id="header"),
        pytest.param({"headers": {"X-Key": f" {SECRET}"}}, id="header that HTTP refuses"),
    ],
)
async def test_no_error_shows_a_secret(
    server: HttpServer, fault: web.Reply, given: dict[str, object]
) -> None:
    server.reply = fault
    async with connected(server.url, timeout="200ms", **given) as made:
        with pytest.raises(errors.SourceError) as raised:
            await made.get(server.url)

    assert SECRET not in shown(raised.value)


def shown(error: Exception) -> str:
    """Return all that a log could show of an error, its causes included."""
    return "".join(traceback.format_exception(error))


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    return _written(tmp_path / "ca.pem", authority)


def _written(path: Path, authority: trustme.CA) -> Path:
    authority.cert_pem.write_to_path(path)
    return path


def _server_context(authority: trustme.CA, *, mutual: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    if mutual:
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@asynccontextmanager
async def secured(authority: trustme.CA, *, mutual: bool) -> AsyncIterator[HttpServer]:
    context = _server_context(authority, mutual=mutual)
    async with HttpServer(web.says("secured"), tls=context) as running:
        yield running


async def test_a_certificate_of_the_own_ca_is_trusted(authority: trustme.CA, ca_file: Path) -> None:
    async with (
        secured(authority, mutual=False) as server,
        connected(server.url, ca_file=ca_file) as made,
    ):
        assert (await made.get(server.url)).body == b"secured"


@pytest.mark.parametrize("trusted", ["system", "other"])
async def test_a_certificate_of_another_ca_is_refused_with_the_reason(
    authority: trustme.CA, tmp_path: Path, trusted: str
) -> None:
    given = {} if trusted == "system" else {"ca_file": _written(tmp_path / "o.pem", trustme.CA())}
    async with secured(authority, mutual=False) as server:
        words = await refusal(server, errors.SourceUnreachableError, **given)

    assert "certificate verify failed" in words


async def test_a_certificate_for_another_name_is_refused(
    authority: trustme.CA, ca_file: Path
) -> None:
    async with (
        secured(authority, mutual=False) as server,
        connected(server.url, ca_file=ca_file) as made,
    ):
        with pytest.raises(errors.SourceUnreachableError, match="Hostname mismatch"):
            await made.get(f"https://localhost:{server.port}")


@pytest.mark.parametrize("files", [1, 2])
async def test_a_client_certificate_is_shown_to_the_server(
    authority: trustme.CA, ca_file: Path, tmp_path: Path, files: int
) -> None:
    issued = authority.issue_cert("scaler@example.org")
    given = {"ca_file": ca_file, "cert_file": tmp_path / "cert.pem"}
    if files == 1:
        issued.private_key_and_cert_chain_pem.write_to_path(given["cert_file"])
    else:
        given["key_file"] = tmp_path / "key.pem"
        issued.cert_chain_pems[0].write_to_path(given["cert_file"])
        issued.private_key_pem.write_to_path(given["key_file"])
    async with (
        secured(authority, mutual=True) as server,
        connected(server.url, **given) as made,
    ):
        assert (await made.get(server.url)).body == b"secured"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_missing_client_certificate_is_an_error_that_says_so(
    authority: trustme.CA, ca_file: Path, version: ssl.TLSVersion
) -> None:
    context = _server_context(authority, mutual=True)
    context.maximum_version = version
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(BOUND_SECONDS)
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        async with connected(url, ca_file=ca_file) as made, asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.to_thread(_refuse_one, listener, context))
            with pytest.raises(errors.SourceUnreachableError, match=r"(?i)alert.*(certif|handsh)"):
                await made.get(url)


def _refuse_one(listener: socket.socket, context: ssl.SSLContext) -> None:
    """Shake hands as most servers do: tell the client why not, and hear it out.

    asyncio's own server drops the connection before the client can read the reason.
    """
    connection, _ = listener.accept()
    connection.settimeout(BOUND_SECONDS)
    secured = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
    with secured:
        with contextlib.suppress(ssl.SSLError):
            secured.do_handshake()
        plain = socket.socket(fileno=secured.detach())
    with plain:
        plain.settimeout(BOUND_SECONDS)
        plain.shutdown(socket.SHUT_WR)
        while plain.recv(4096):
            pass


async def test_plain_http_to_a_tls_port_is_unreachable(authority: trustme.CA) -> None:
    async with secured(authority, mutual=False) as server:
        plain = server.url.replace("https", "http")
        async with connected(plain) as made:
            with pytest.raises(errors.SourceUnreachableError):
                await made.get(plain)


async def test_large_answers_are_read_in_turn() -> None:
    """An answer and what is made of it take much memory: not those of all readers at a time."""
    begun = asyncio.Event()

    async def reply(request: web.Request, writer: asyncio.StreamWriter) -> None:
        begun.set()
        await web.says("x" * 3 * ONE_MIB)(request, writer)

    async with HttpServer(reply) as server, connected(server.url) as client:

        async def read() -> int:
            with client.turn():
                return len((await client.get(server.url)).body)

        with client.turn():
            assert len((await client.get(server.url)).body) == 3 * ONE_MIB
            begun.clear()
            second = asyncio.create_task(read())
            await begun.wait()
            small = await client.get(server.url)
            assert small.body
            assert not second.done()
        async with asyncio.timeout(BOUND_SECONDS):
            assert await second == 3 * ONE_MIB
