"""Open streams of type external-push, beside what is measured: nothing may end them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from benchmarks.processes import Server, ServerError
from benchmarks.world import Trigger
from keda_gpu_scaler.pb import externalscaler_pb2_grpc


@dataclass(slots=True)
class Stream:
    """One open stream about a busy workload."""

    trigger: Trigger
    trouble: str = ""
    """Why it failed; nothing while it is open."""

    async def read(self, stub: Any) -> None:  # noqa: ANN401 - generated code has no types
        """Read what is pushed, until the stream ends."""
        try:
            async for response in stub.StreamIsActive(self.trigger.reference()):
                if not response.result:
                    self.trouble = "it was told `false`"
                    return
            self.trouble = "its stream ended"
        except grpc.aio.AioRpcError as error:
            self.trouble = f"its stream failed: {error.details()}"


def check_open(streams: Sequence[Stream]) -> None:
    """Raise ServerError unless all of them are still open."""
    for stream in streams:
        if stream.trouble:
            raise ServerError(f"{stream.trigger.reference().name}: {stream.trouble}")


@contextlib.asynccontextmanager
async def opened(server: Server, triggers: Iterable[Trigger]) -> AsyncIterator[list[Stream]]:
    """Hold the streams open, on one connection as KEDA does."""
    streams = [Stream(trigger) for trigger in triggers]
    async with grpc.aio.insecure_channel(server.address) as channel:
        stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)
        readings = [asyncio.create_task(stream.read(stub)) for stream in streams]
        try:
            yield streams
        finally:
            for reading in readings:
                reading.cancel()
            await asyncio.gather(*readings, return_exceptions=True)
