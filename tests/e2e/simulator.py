"""The GPUs of one namespace's pods, as `keda-gpu-scaler simulate --kubernetes` shows them.

In the process of the test: to start another Python for it would cost more than all it does in a
scenario. The command itself runs in the quick start without a GPU.
"""

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import lightkube
from lightkube.resources.core_v1 import Node, Pod

from keda_gpu_scaler.simulator import exposition, mirror, pods, server, web
from tests.e2e.manifests import NODE_LABEL
from tests.e2e.watching import again

_PAUSE_SECONDS = 1
"""As the command."""


@dataclass(frozen=True, slots=True)
class Simulator:
    """The way to a simulator that shows a lab's nodes, and its namespace's pods."""

    namespace: str
    port: int
    _client: httpx.AsyncClient

    async def change(self, workload: str, **fields: object) -> None:
        """Change what is offered to a workload, or what its pods show."""
        path = f"/workloads/{self.namespace}/{workload}"
        response = await self._client.put(path, json=fields)
        assert response.is_success, response.text


@contextlib.asynccontextmanager
async def standing(client: lightkube.AsyncClient, lab: str) -> AsyncIterator[Simulator]:
    """Show what a lab has from now until the block ends."""
    shown, stop = mirror.Mirror(), asyncio.Event()
    await _look(client, lab, shown)
    listener = server.bind("127.0.0.1", 0)
    application = web.application(web.Api(shown, exposition.Style(), time.monotonic))
    tasks = [
        asyncio.create_task(
            again(functools.partial(_look_later, client, lab, shown)), name="simulator-lists"
        ),
        asyncio.create_task(server.serve(application, listener, stop), name="simulator"),
    ]
    inside = httpx.ASGITransport(app=application)
    try:
        async with httpx.AsyncClient(transport=inside, base_url="http://simulator") as asked:
            yield Simulator(lab, listener.getsockname()[1], asked)
    finally:
        tasks[0].cancel()
        stop.set()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _look_later(client: lightkube.AsyncClient, lab: str, shown: mirror.Mirror) -> None:
    await asyncio.sleep(_PAUSE_SECONDS)
    await _look(client, lab, shown)


async def _look(client: lightkube.AsyncClient, lab: str, shown: mirror.Mirror) -> None:
    nodes = [each async for each in client.list(Node, labels={NODE_LABEL: lab})]
    placed = [each async for each in client.list(Pod, namespace=lab)]
    shown.show(pods.nodes(nodes), pods.pods(placed))
