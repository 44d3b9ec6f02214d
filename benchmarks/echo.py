"""A server that answers KEDA and does nothing else: what grpc.aio costs by itself.

It reads the same requests, writes a constant of the same shape or holds a stream open. Started by
`processes`, as `python -m benchmarks.echo PORT`; it ends with SIGTERM.
"""
# ruff: noqa: N802 - the method carries the name of KEDA's contract

import asyncio
import signal
import sys
from typing import Any, TypeAlias

import grpc

from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc

METRIC_NAME, TARGET, VALUE = "gpu-utilization", 70.0, 150.5
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class Echo(externalscaler_pb2_grpc.ExternalScalerServicer):  # type: ignore[misc]  # generated
    """Answers without looking."""

    async def GetMetrics(
        self, request: pb.GetMetricsRequest, _context: Context
    ) -> pb.GetMetricsResponse:
        """Answer with the metric's name and a number."""
        metric = pb.MetricValue(
            metricName=request.metricName, metricValue=round(VALUE), metricValueFloat=VALUE
        )
        return pb.GetMetricsResponse(metricValues=[metric])

    async def GetMetricSpec(
        self, _request: pb.ScaledObjectRef, _context: Context
    ) -> pb.GetMetricSpecResponse:
        """Answer with a name and a target."""
        spec = pb.MetricSpec(
            metricName=METRIC_NAME, targetSize=round(TARGET), targetSizeFloat=TARGET
        )
        return pb.GetMetricSpecResponse(metricSpecs=[spec])

    async def IsActive(
        self, _request: pb.ScaledObjectRef, _context: Context
    ) -> pb.IsActiveResponse:
        """Answer that it is."""
        return pb.IsActiveResponse(result=True)

    async def StreamIsActive(self, _request: pb.ScaledObjectRef, _context: Context) -> None:
        """Hold the stream open, and say nothing."""
        await asyncio.Event().wait()


async def main(port: int) -> None:
    """Serve until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = grpc.aio.server()
    externalscaler_pb2_grpc.add_ExternalScalerServicer_to_server(Echo(), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await stop.wait()
    await server.stop(None)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
