"""The scaler of the demo: its evaluator on a made-up source, asked through its gRPC port.

Calls are those of KEDA and the HPA for one trigger. An error is no answer here, as for KEDA.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc

from keda_gpu_scaler.autoscaling.rules import Metric
from keda_gpu_scaler.decision.summary import Summary
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.evaluator.ports import Source
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.service.server import GrpcServer
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access

_HPA_SECONDS = 30
"""The deadline of the HPA's calls; KEDA's polls have none."""
_NO_PROXY = [("grpc.enable_http_proxy", 0)]


@dataclass(frozen=True, slots=True)
class Door:
    """The scaler, as KEDA and the HPA ask it for one trigger."""

    stub: Any
    trigger: pb.ScaledObjectRef
    evaluator: Evaluator

    async def metric(self) -> Metric:
        """Return what the HPA sees at a sync."""
        spec = (await self.stub.GetMetricSpec(self.trigger)).metricSpecs[0]
        request = pb.GetMetricsRequest(scaledObjectRef=self.trigger, metricName=spec.metricName)
        values: list[float] = []
        with contextlib.suppress(grpc.aio.AioRpcError):
            answer = await self.stub.GetMetrics(request, timeout=_HPA_SECONDS)
            values = [metric.metricValueFloat for metric in answer.metricValues]
        return Metric(value=values[0] if values else None, target=spec.targetSizeFloat)

    async def is_active(self) -> bool | None:
        """Return what KEDA sees at a poll."""
        with contextlib.suppress(grpc.aio.AioRpcError):
            return bool((await self.stub.IsActive(self.trigger)).result)
        return None

    async def listen(self, woken: Callable[[], None]) -> None:
        """Keep the stream of external-push open, and tell of each push."""
        async for _ in self.stub.StreamIsActive(self.trigger):
            woken()

    @property
    def summary(self) -> Summary:
        """What people are told of the last answer."""
        return next(iter(self.evaluator.summaries()))


@contextlib.asynccontextmanager
async def opened(
    source: Source,
    scaled_object: ScaledObject,
    metadata: Mapping[str, str],
    woken: Callable[[], None] | None = None,
) -> AsyncIterator[Door]:
    """Serve on a free port of this machine, by the running loop's time, until the block ends.

    With `woken` the trigger is of type external-push.
    """
    evaluator = Evaluator({"default": source}, clock=asyncio.get_running_loop().time)
    server = GrpcServer(
        evaluator,
        access=Access({"default": EVERY_NAMESPACE}),
        address="127.0.0.1:0",
        observe=facts.ignore,
        max_concurrent_rpcs=10,
        connection_max_age_seconds=600,
    )
    trigger = pb.ScaledObjectRef(**scaled_object._asdict(), scalerMetadata=metadata)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(evaluator.close)
        port = await server.start()
        stack.push_async_callback(server.stop, 1)
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", _NO_PROXY)
        await stack.enter_async_context(channel)
        door = Door(externalscaler_pb2_grpc.ExternalScalerStub(channel), trigger, evaluator)
        if woken is not None:
            stream = asyncio.create_task(door.listen(woken))
            stack.push_async_callback(asyncio.wait, {stream})
            stack.callback(stream.cancel)
        yield door
