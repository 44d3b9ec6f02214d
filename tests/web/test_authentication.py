"""Which clients may send requests to the HTTP port, and what their bodies may be."""

import base64
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from prometheus_client import CollectorRegistry, Gauge

from keda_gpu_scaler import errors, web
from keda_gpu_scaler.web.authentication import OPEN_BYTES
from testbed.processes import until
from tests.support import webhooks
from tests.support.alert_messages import BERT, alert, group
from tests.support.browsing import browsing
from tests.support.connections import Streams, connected
from tests.support.webhooks import Hook

TOKEN = "m3trics-t0ken"
MIB = 2**20


class Rotating:
    """A token that changes, or cannot be read."""

    def __init__(self) -> None:
        self.now: str | None = TOKEN

    def __call__(self) -> str:
        """Return it."""
        if self.now is None:
            raise errors.SettingsError("the HTTP port's token file cannot be read: gone")
        return self.now


@asynccontextmanager
async def serving(token: Rotating, hook: Hook) -> AsyncIterator[httpx.AsyncClient]:
    """Serve every page with this token, and give a client that knows none."""
    registry = CollectorRegistry()
    Gauge("answer_ratio", "Of everything.", registry=registry).set(42)
    webhook = web.Webhook(hook.alerts, hook.secret, hook.broadcast, hook.seen.append)
    async with browsing(web.create_app(registry, lambda: True, webhook, token)) as client:
        yield client


def knowing(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def basic(credentials: str | bytes) -> str:
    content = credentials if isinstance(credentials, bytes) else credentials.encode()
    return f"Basic {base64.b64encode(content).decode()}"


async def test_a_client_with_the_token_reads_the_metrics() -> None:
    known = basic(f"prometheus:{TOKEN}")
    async with serving(Rotating(), Hook()) as client:
        for header in (f"Bearer {TOKEN}", f"bearer  {TOKEN}", known, known.replace("as", "AS")):
            answer = await client.get("/metrics", headers={"authorization": header})
            assert answer.status_code == 200, header
            assert "answer_ratio 42.0" in answer.text


PAGES = ("/metrics", "/", "/no/such/page", "//metrics", "/healthz/")
WEBHOOKS = ("/webhook", "/webhook/ml/bert", "/alerts")


@pytest.mark.parametrize("path", PAGES + WEBHOOKS)
async def test_without_its_token_every_page_is_refused_if_it_exists_or_not(path: str) -> None:
    token = TOKEN if path in PAGES else webhooks.TOKEN
    wrong = ["", token, "Bearer", "Bearer wrong", f"Bearer {token}x", f"Digest {token}"]
    wrong += [f"Basic {token}", "Basic !", basic(token), basic(f"{token}:"), basic(b"a:\xff")]
    hook = Hook()
    async with serving(Rotating(), hook) as client:
        url = str(client.base_url).rstrip("/") + path
        for header in wrong:
            headers = {"authorization": header}
            answer = await client.post(url, json=group(alert()), headers=headers)
            assert answer.status_code == 401, header
            assert answer.text.endswith("Authorization: Bearer …, or as a Basic password")
            assert ("the HTTP port's token" in answer.text) is (path in PAGES)
            assert answer.headers["www-authenticate"].startswith("Bearer, Basic realm=")
            assert answer.headers["content-type"] == "text/plain; charset=utf-8"
            assert token not in answer.text
    assert hook.alerts.records() == []
    assert len(hook.notified) == (len(wrong) if path.startswith("/webhook") else 0)


async def test_the_webhook_and_other_replicas_keep_their_own_token() -> None:
    async with serving(Rotating(), Hook()) as client:
        for token, webhook, metrics in ((webhooks.TOKEN, 200, 401), (TOKEN, 401, 200)):
            headers = knowing(token)
            hooked = await client.post("/webhook", json=group(alert()), headers=headers)
            alerts = await client.get("/alerts", headers=headers)
            page = await client.get("/metrics", headers=headers)
            statuses = hooked.status_code, alerts.status_code, page.status_code
            assert statuses == (webhook, webhook, metrics)


async def test_a_token_counts_from_the_next_request_on_and_nobody_is_let_in_without_one() -> None:
    token = Rotating()
    async with serving(token, Hook()) as client:
        token.now = "another"
        old = await client.get("/metrics", headers=knowing(TOKEN))
        new = await client.get("/metrics", headers=knowing("another"))
        token.now = None
        none = await client.get("/metrics", headers=knowing("another"))
        assert (await client.get("/healthz")).status_code == 200
    assert (old.status_code, new.status_code, none.status_code) == (401, 200, 503)
    assert none.text == "the HTTP port's token file cannot be read: gone"


# Bodies


async def test_what_is_no_json_is_refused() -> None:
    async with webhooks.serving(Hook()) as client:
        for body in (b"", b"text", b'{"alerts":[', b'{"a":NaN}', b'{"a":"\xff"}', b"[" * 100_000):
            answer = await client.post("/webhook", content=body)
            assert answer.status_code == 400, body[:20]
            assert answer.text.startswith("expected a body of JSON: ")


async def test_a_body_may_have_a_mebibyte_and_no_compression() -> None:
    long = group(alert(annotations={"summary": ""}))
    async with webhooks.serving(Hook()) as client:
        size = len(client.build_request("POST", "/", json=long).content)
        long["alerts"][0]["annotations"]["summary"] = "x" * (MIB - size)
        answer = await client.post("/webhook", json=long)
        long["alerts"][0]["annotations"]["summary"] += "x"
        larger = await client.post("/webhook", json=long)
        packed = {"content-encoding": "gzip"}
        compressed = await client.post("/webhook", content=b"\x1f\x8b", headers=packed)
    statuses = answer.status_code, larger.status_code, compressed.status_code
    assert statuses == (200, 413, 415)
    assert larger.text.startswith(f"expected at most {MIB} bytes")
    assert compressed.text == "expected a body that is not compressed"


async def test_bodies_that_trickle_keep_none_waiting() -> None:
    async with webhooks.serving(Hook()) as client, contextlib.AsyncExitStack() as stack:
        for _ in range(100):
            _, writer = await stack.enter_async_context(sending(client, "content-length: 100"))
            writer.write(b"{")
            await writer.drain()
        assert (await client.post("/webhook", json=group(alert()))).status_code == 200


@pytest.mark.parametrize("path", ["/webhook", "/alerts"])
async def test_all_bodies_together_are_bounded(path: str) -> None:
    """Also bodies that wait for another one to be parsed, or for the rest of themselves."""
    hook, size = Hook(), OPEN_BYTES // 16
    async with webhooks.serving(hook) as client:
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(16):
                begun = sending(client, f"content-length: {size}", path)
                _, writer = await stack.enter_async_context(begun)
                writer.write(b"x" * (size - 1))

            async def is_there() -> bool:
                return hook.bodies.open_bytes == 16 * (size - 1)

            await until(is_there, 30, "the bodies are there but for their last bytes")
            refused = await client.post("/webhook", json=group(alert()))
            assert refused.status_code == 503
            assert (
                refused.text == f"more than {OPEN_BYTES} bytes of messages at once; send it again"
            )

        async def is_gone() -> bool:
            return hook.bodies.open_bytes == 0

        await until(is_gone, 30, "no body is there")
        assert (await client.post("/webhook", json=group(alert()))).status_code == 200
    assert hook.bodies.open_bytes == 0


@asynccontextmanager
async def sending(
    client: httpx.AsyncClient, header: str, path: str = "/webhook"
) -> AsyncIterator[Streams]:
    """Begin a request with a body that does not end."""
    port = client.base_url.port
    assert port is not None
    head = f"POST {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {webhooks.TOKEN}\r\n{header}"
    async with connected(port) as (reader, writer):
        writer.write(f"{head}\r\n\r\n".encode())
        yield reader, writer


async def test_a_body_of_unknown_size_is_refused_before_it_is_read() -> None:
    async with (
        webhooks.serving(Hook()) as client,
        sending(client, "transfer-encoding: chunked") as (reader, _),
    ):
        answer = (await reader.read()).decode()
    assert answer.startswith("HTTP/1.1 400 ")
    assert "A body needs a Content-Length." in answer


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with (
        webhooks.serving(Hook(body_seconds=0.05)) as client,
        sending(client, "content-length: 100") as (reader, _),
    ):
        answer = (await reader.read()).decode()
    assert answer.startswith("HTTP/1.1 408 Request Timeout\r\n")
    assert answer.endswith("expected the body within 0.05 s")


async def test_a_sender_who_goes_away_in_the_middle_is_no_error() -> None:
    hook = Hook()
    async with webhooks.serving(hook) as client:
        async with sending(client, "content-length: 100") as (_, writer):
            writer.write(b"{")
            await writer.drain()
        while not hook.notified:
            await client.get("/healthz")
    assert hook.notified == [("unknown", 400)]
    assert hook.alerts.firing(BERT) is None
