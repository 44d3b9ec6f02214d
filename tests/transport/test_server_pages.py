"""Metrics, health and the life of the server, over real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from prometheus_client import CollectorRegistry, Gauge

from keda_gpu_scaler import errors, web
from keda_gpu_scaler.transport.server import Bounds


@asynccontextmanager
async def serving(
    host: str = "127.0.0.1", *, ready: bool = True, shutdown_seconds: int = 5
) -> AsyncIterator[httpx.AsyncClient]:
    registry = CollectorRegistry()
    Gauge("answer_ratio", "Of everything.", registry=registry).set(42)
    bounds = Bounds(shutdown_seconds=shutdown_seconds)
    server = web.HttpServer(web.create_app(registry, lambda: ready), host, 0, bounds=bounds)
    port = await server.start()
    at = f"[{host}]" if ":" in host else host or "127.0.0.1"
    try:
        async with httpx.AsyncClient(base_url=f"http://{at}:{port}", trust_env=False) as client:
            yield client
    finally:
        await server.stop()


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost"])
async def test_it_is_alive_while_the_loop_answers(host: str) -> None:
    async with serving(host) as client:
        answer = await client.get("/healthz")
    assert (answer.status_code, answer.text) == (200, "ok\n")


@pytest.mark.parametrize(
    ("ready", "status", "text"),
    [(True, 200, "ready\n"), (False, 503, "starting or draining\n")],
)
async def test_it_is_ready_when_it_says_so(ready: bool, status: int, text: str) -> None:  # noqa: FBT001 - a table
    async with serving(ready=ready) as client:
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.text) == (status, text)


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
async def test_metrics_come_as_text_whatever_was_asked_for(accept: str) -> None:
    async with serving() as client:
        answer = await client.get("/metrics", headers={"accept": accept})
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.text.splitlines()[-1] == "answer_ratio 42.0"


async def test_anything_else_is_refused_in_plain_text() -> None:
    async with serving() as client:
        missing = await client.get("/")
        wrong = await client.post("/metrics")
    assert (missing.status_code, missing.text) == (404, "Not Found")
    assert (wrong.status_code, wrong.text) == (405, "Method Not Allowed")
    assert missing.headers["content-type"] == "text/plain; charset=utf-8"
    assert "server" not in missing.headers


async def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = web.HttpServer(web.create_app(CollectorRegistry(), bool), "127.0.0.1", port)
        expected = f"cannot listen on port {port} of 127.0.0.1: Address already in use"
        with pytest.raises(errors.SettingsError, match=expected):
            await server.start()


async def test_a_host_that_is_not_ours_is_named() -> None:
    server = web.HttpServer(web.create_app(CollectorRegistry(), bool), "no.such.host.invalid", 0)
    with pytest.raises(errors.SettingsError, match=r"port 0 of no\.such\.host\.invalid: "):
        await server.start()


async def test_stopping_right_after_the_start_ends_it() -> None:
    server = web.HttpServer(web.create_app(CollectorRegistry(), bool), "127.0.0.1", 0)
    port = await server.start()
    await server.stop()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_a_server_that_never_started_stops_at_once() -> None:
    await web.HttpServer(web.create_app(CollectorRegistry(), bool), "127.0.0.1", 0).stop()


async def test_an_open_connection_does_not_hold_up_the_stop() -> None:
    async with asyncio.timeout(30), serving(shutdown_seconds=3600) as client:
        await client.get("/healthz")
        # The client's connection is kept alive while the server stops.
