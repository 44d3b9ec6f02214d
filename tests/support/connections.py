"""A connection to a server of the test, for bytes that no HTTP client sends."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import TypeAlias

from tests.support import certificates

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def connected(port: int, context: ssl.SSLContext | None = None) -> AsyncIterator[Streams]:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname=certificates.HOST if context else None
    )
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
