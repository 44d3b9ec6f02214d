"""Metrics and health, over real sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from prometheus_client import CollectorRegistry, Gauge

from keda_gpu_scaler import web


@asynccontextmanager
async def serving(*, ready: bool = True) -> AsyncIterator[httpx.AsyncClient]:
    registry = CollectorRegistry()
    Gauge("answer_ratio", "Of everything.", registry=registry).set(42)
    server = web.HttpServer(web.create_app(registry, lambda: ready), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{await server.start()}"
    try:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            yield client
    finally:
        await server.stop()


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
