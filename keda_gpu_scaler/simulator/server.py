"""Uvicorn around the simulator, on a socket that is already bound, until an event says stop.

Signals are the caller's: it sets the event. So the tests need none, and the command ends with 0.
"""

import asyncio
import socket

from starlette.applications import Starlette

from keda_gpu_scaler import http_server

_BOUNDS = http_server.Bounds(shutdown_seconds=2)


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; connections wait in it until `serve` runs. OSError if taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


async def serve(app: Starlette, listener: socket.socket, stop: asyncio.Event) -> None:
    """Serve until `stop` is set, then let answers in progress finish."""
    server = http_server.create(app, _BOUNDS)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve(sockets=[listener]), name="simulator-http")
        serving.add_done_callback(lambda _: stop.set())
        await stop.wait()
        server.should_exit = True
