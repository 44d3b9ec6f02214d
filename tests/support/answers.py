"""An HTTP server in a thread, for commands that a test runs in its own."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from anyio.from_thread import start_blocking_portal

from tests.support.http_replies import HttpServer, Request, says


@contextmanager
def answering(answer: Callable[[str, str | None], tuple[int, bytes]]) -> Iterator[int]:
    """Answer each GET on a free port by its path and its Authorization header; yield the port."""

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        status, body = answer(request.path, request.headers.get("authorization"))
        await says(body, status)(request, writer)

    serving = HttpServer(reply)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serving) as server:
        yield server.port
