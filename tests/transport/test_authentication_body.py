"""Which clients may send requests, and what their bodies may be."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

import httpx
import pytest

from keda_gpu_scaler.web.webhook import READ_AT_ONCE
from tests.support.alert_messages import BERT, alert, group
from tests.support.webhooks import TOKEN, Hook, serving

BASIC = base64.b64encode(f"grafana:{TOKEN}".encode()).decode()
MIB = 2**20
Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


NO_TOKEN = (
    "",
    TOKEN,
    "Bearer",
    "Bearer wrong",
    f"Bearer {TOKEN}x",
    f"Digest {TOKEN}",
    f"Basic {TOKEN}",
    "Basic !",
    "Basic " + base64.b64encode(TOKEN.encode()).decode(),
    "Basic " + base64.b64encode(f"{TOKEN}:".encode()).decode(),
    "Basic " + base64.b64encode(b"grafana:\xff").decode(),
)


@pytest.mark.parametrize("path", ["/webhook", "/webhook/ml/bert", "/alerts"])
async def test_a_request_without_the_token_is_refused(path: str, subtests: pytest.Subtests) -> None:
    hook = Hook()
    async with serving(hook) as client:
        for header in NO_TOKEN:
            known = {"authorization": header}
            answer = await client.post(path, json=group(alert()), headers=known)
            with subtests.test(header):
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"].startswith("Bearer, Basic realm=")
                assert TOKEN not in answer.text
    assert hook.alerts.records() == []
    assert hook.notified == ([] if path == "/alerts" else [("unknown", 401)] * len(NO_TOKEN))


async def test_what_is_no_json_is_refused(subtests: pytest.Subtests) -> None:
    bodies = (b"", b"text", b'{"alerts":[', b'{"a":NaN}', b'{"a":"\xff"}', b"[" * 100_000)
    async with serving(Hook()) as client:
        for body in bodies:
            answer = await client.post("/webhook", content=body)
            with subtests.test(repr(body[:20])):
                assert answer.status_code == 400
                assert answer.text.startswith("expected a body of JSON: ")


async def test_a_body_that_is_compressed_is_refused() -> None:
    async with serving(Hook()) as client:
        answer = await client.post(
            "/webhook", content=b"\x1f\x8b", headers={"content-encoding": "gzip"}
        )
    assert (answer.status_code, answer.text) == (415, "expected a body that is not compressed")


async def test_a_body_may_have_a_mebibyte() -> None:
    long = group(alert(annotations={"summary": ""}))
    async with serving(Hook()) as client:
        size = len(client.build_request("POST", "/", json=long).content)
        long["alerts"][0]["annotations"]["summary"] = "x" * (MIB - size)
        answer = await client.post("/webhook", json=long)
        long["alerts"][0]["annotations"]["summary"] += "x"
        larger = await client.post("/webhook", json=long)
    assert (answer.status_code, larger.status_code) == (200, 413)
    assert larger.text.startswith(f"expected at most {MIB} bytes")


async def test_bodies_are_read_a_few_at_a_time_and_others_wait_for_their_turn() -> None:
    async with serving(Hook()) as client, contextlib.AsyncExitStack() as stack:
        slow = [
            await stack.enter_async_context(sending(client, "content-length: 1"))
            for _ in range(READ_AT_ONCE)
        ]
        waiting = asyncio.create_task(client.post("/webhook", json=group(alert())))
        for _, writer in slow:
            await writer.drain()
        while not waiting.done():
            reader, writer = slow.pop()
            assert (await client.get("/healthz")).status_code == 200
            writer.write(b"{")
            assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
            await asyncio.wait({waiting}, timeout=0.1)
        assert (await waiting).status_code == 200


@asynccontextmanager
async def sending(client: httpx.AsyncClient, header: str) -> AsyncIterator[Streams]:
    """Begin a request with a body that does not end."""
    reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
    head = f"POST /webhook HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {TOKEN}\r\n{header}"
    writer.write(f"{head}\r\n\r\n".encode())
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_a_body_of_unknown_size_is_bounded_while_it_is_read() -> None:
    async with (
        serving(Hook()) as client,
        sending(client, "transfer-encoding: chunked") as (reader, writer),
    ):
        for _ in range(16):
            writer.write(b"10000\r\n%s\r\n" % (b" " * 65_536))
            await writer.drain()
        writer.write(b"1\r\n \r\n")  # nothing is left to be sent when the answer comes
        # The words after the number are those of the Python that runs this.
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with (
        serving(Hook(body_seconds=0.05)) as client,
        sending(client, "content-length: 100") as (reader, _),
    ):
        answer = (await reader.read()).decode()
    assert answer.startswith("HTTP/1.1 408 Request Timeout\r\n")
    assert answer.endswith("expected the body within 0.05 s")


async def test_a_sender_who_goes_away_in_the_middle_is_no_error() -> None:
    hook = Hook()
    async with serving(hook) as client:
        async with sending(client, "content-length: 100") as (_, writer):
            writer.write(b"{")
            await writer.drain()
        while not hook.notified:
            await client.get("/healthz")
    assert hook.notified == [("unknown", 400)]
    assert hook.alerts.firing(BERT) is None
