"""A client of the pages of an application that is served on a real port."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
from starlette.applications import Starlette

from keda_gpu_scaler import web

HANG_SECONDS = 120
"""Bounds a test that hangs; far above anything a test takes."""


@asynccontextmanager
async def browsing(
    app: Starlette, headers: Mapping[str, str] | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """Serve an application, and give a client that sends these headers."""
    server = web.HttpServer(app, "127.0.0.1", 0)
    async with asyncio.timeout(HANG_SECONDS):
        url = f"http://127.0.0.1:{await server.start()}"
        try:
            known = httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=60)
            async with known as client:
                yield client
        finally:
            await server.stop()
