"""Uvicorn around the simulator, on a socket that is already bound, until an event says stop.

Signals are the caller's: it sets the event. So the tests need none, and the command ends with 0.
"""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from starlette.applications import Starlette

_SHUTDOWN_SECONDS = 2
"""Answers take milliseconds; what is not done by then is a client that does not read."""


class _Server(uvicorn.Server):
    """Uvicorn without its own signal handlers, which would end the process by the signal."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; connections wait in it until `serve` runs. OSError if taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


async def serve(app: Starlette, listener: socket.socket, stop: asyncio.Event) -> None:
    """Serve until `stop` is set, then let answers in progress finish."""
    server = _Server(_config(app))
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve(sockets=[listener]), name="simulator-http")
        serving.add_done_callback(lambda _: stop.set())
        await stop.wait()
        server.should_exit = True


def _config(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
