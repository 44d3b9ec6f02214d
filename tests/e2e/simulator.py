"""The GPUs of one namespace's pods, as `keda-gpu-scaler simulate --kubernetes` shows them.

It runs in the test's process: to start another Python would cost more than all its work in a
scenario. The command itself runs in the quick start without a GPU.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import lightkube

from keda_gpu_scaler.simulator import kubernetes, mirror, web
from tests.e2e.manifests import NODE_LABEL
from tests.e2e.product import READY_WITHIN_SECONDS


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
async def standing(config: lightkube.KubeConfig, lab: str) -> AsyncIterator[Simulator]:
    """Show what a lab has from now until the block ends."""
    shown, listed, stop = mirror.Mirror(), asyncio.Event(), asyncio.Event()
    scope = kubernetes.Scope(lab, {NODE_LABEL: lab})
    # Messages about failed lists are for the command's terminal: a scenario sees the GPUs.
    follower = kubernetes.Follower(shown, scope, say=lambda _: None, config=config)
    listener = web.bind("127.0.0.1", 0)
    application = web.application(web.Api(shown, time.monotonic))
    async with follower.running(listed.set):
        await asyncio.wait_for(listed.wait(), READY_WITHIN_SECONDS)
        serving = asyncio.create_task(web.serve(application, listener, stop), name="simulator")
        inside = httpx.ASGITransport(app=application)
        try:
            async with httpx.AsyncClient(transport=inside, base_url="http://simulator") as asked:
                yield Simulator(lab, listener.getsockname()[1], asked)
        finally:
            stop.set()
            await serving
