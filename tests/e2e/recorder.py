"""A scaler that answers what the test says, and records what KEDA asks.

It is made from KEDA's own contract and shares nothing with the product but the generated code.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import grpc

from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc

METRIC = "recorded"
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of KEDA's."""

    method: str
    reference: Any
    """The ScaledObjectRef, as it came."""
    metric_name: str
    """What GetMetrics asks for; empty in other calls."""
    seconds_left: float | None
    """Until the caller's deadline; None without one."""
    connection: str
    at_seconds: float = field(default_factory=time.monotonic)

    @property
    def metadata(self) -> dict[str, str]:
        return dict(self.reference.scalerMetadata)


@dataclass(slots=True)
class Stream:
    """One StreamIsActive that KEDA holds open."""

    call: Call
    over: bool = False
    _orders: asyncio.Queue[bool | grpc.StatusCode] = field(default_factory=asyncio.Queue)

    def push(self, *, active: bool) -> None:
        self._orders.put_nowait(active)

    def end(self, code: grpc.StatusCode) -> None:
        self._orders.put_nowait(code)

    async def orders(self) -> AsyncIterator[bool | grpc.StatusCode]:
        """Yield what is to be sent, in order, for ever."""
        while True:
            yield await self._orders.get()


@dataclass(slots=True)
class Recorder(externalscaler_pb2_grpc.ExternalScalerServicer):  # type: ignore[misc]  # untyped
    """The answers to give from now on, and everything asked so far, oldest first.

    Numbers are in both fields: KEDA 2.16 reads whole ones only.
    """

    targets: list[Any] = field(
        default_factory=lambda: [
            pb.MetricSpec(metricName=METRIC, targetSize=10, targetSizeFloat=10)
        ]
    )
    values: list[Any] = field(
        default_factory=lambda: [
            pb.MetricValue(metricName=METRIC, metricValue=10, metricValueFloat=10)
        ]
    )
    active: bool = True
    active_for_hpa: bool | None = None
    """The answer to calls with a deadline, where it differs."""
    failure: grpc.StatusCode | None = None
    """What GetMetrics fails with, if it does."""
    failures_left: float = math.inf
    """How many more calls fail with it."""
    spec_seconds: float | None = None
    """How long a StreamMetricSpec is open, after the targets were sent; None: it sends nothing."""
    polls_wait_for: asyncio.Event | None = None
    """What has to happen before GetMetrics answers a call without a deadline."""
    calls: list[Call] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    address: str = ""

    def asked(self, method: str = "", *, workload: str = "") -> list[Call]:
        """Return the calls of one method, and those for one ScaledObject."""
        return [
            call
            for call in self.calls
            if method in ("", call.method) and workload in ("", call.reference.name)
        ]

    async def GetMetricSpec(self, request: Any, context: Context) -> Any:
        self._write("GetMetricSpec", request, context)
        return pb.GetMetricSpecResponse(metricSpecs=self.targets)

    async def GetMetrics(self, request: Any, context: Context) -> Any:
        call = self._write("GetMetrics", request.scaledObjectRef, context, request.metricName)
        if self.polls_wait_for and call.seconds_left is None:
            await self.polls_wait_for.wait()
        if self.failure and self.failures_left > 0:
            self.failures_left -= 1
            await context.abort(self.failure, "as the test wants it")
        return pb.GetMetricsResponse(metricValues=self.values)

    async def IsActive(self, request: Any, context: Context) -> Any:
        call = self._write("IsActive", request, context)
        differs = self.active_for_hpa is not None and call.seconds_left is not None
        return pb.IsActiveResponse(result=self.active_for_hpa if differs else self.active)

    async def StreamIsActive(self, request: Any, context: Context) -> None:
        """Do what the test orders on this stream."""
        stream = Stream(self._write("StreamIsActive", request, context))
        self.streams.append(stream)
        try:
            await self._follow(stream, context)
        finally:
            stream.over = True

    async def StreamMetricSpec(self, request: Any, context: Context) -> None:
        """Send the targets once, or nothing ever."""
        self._write("StreamMetricSpec", request, context)
        if self.spec_seconds is None:
            await asyncio.Event().wait()
        else:
            await context.write(pb.GetMetricSpecResponse(metricSpecs=self.targets))
            await asyncio.sleep(self.spec_seconds)

    @staticmethod
    async def _follow(stream: Stream, context: Context) -> None:
        async for order in stream.orders():
            if isinstance(order, bool):
                await context.write(pb.IsActiveResponse(result=order))
            elif order is grpc.StatusCode.OK:
                return
            else:
                await context.abort(order, "as the test wants it")

    def _write(self, method: str, reference: Any, context: Context, name: str = "") -> Call:
        call = Call(method, reference, name, context.time_remaining(), context.peer())
        self.calls.append(call)
        return call


@contextlib.asynccontextmanager
async def recording(**options: int) -> AsyncIterator[Recorder]:
    """Serve a recorder on 127.0.0.1, with options of gRPC's server without their `grpc.`."""
    recorder = Recorder()
    async with serving(recorder, **options):
        yield recorder


@contextlib.asynccontextmanager
async def serving(recorder: Recorder, **options: int) -> AsyncIterator[None]:
    """Serve one of a kind of its own."""
    server = grpc.aio.server(options=[(f"grpc.{name}", value) for name, value in options.items()])
    externalscaler_pb2_grpc.add_ExternalScalerServicer_to_server(recorder, server)
    recorder.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield
    finally:
        await server.stop(0)
