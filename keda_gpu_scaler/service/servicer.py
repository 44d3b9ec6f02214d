"""The five RPCs of KEDA's contract, each a translation around one evaluation.

GetMetricSpec and StreamMetricSpec use the spec alone, so that they answer while every source is
down. An error leaves as an exception: `calls.py` gives it its status code.
"""
# ruff: noqa: N802 - the methods carry the names of KEDA's contract

import asyncio
import time
from typing import Any, TypeAlias

import grpc
import structlog

from keda_gpu_scaler import decision
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.service import answers, requests, streams
from keda_gpu_scaler.service.awake import Awake
from keda_gpu_scaler.service.evaluations import Evaluations

log = structlog.get_logger()

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class Servicer:
    """Answers KEDA's calls for every ScaledObject."""

    def __init__(
        self, evaluations: Evaluations, *, draining: asyncio.Event, stream_seconds: float
    ) -> None:
        self._evaluations = evaluations
        self._triggers = requests.Triggers(
            evaluations.source_names, knows_targets=evaluations.knows_targets
        )
        self._awake = Awake()
        self._draining = draining
        self._stream_seconds = stream_seconds

    async def GetMetricSpec(
        self, request: pb.ScaledObjectRef, _context: Context
    ) -> pb.GetMetricSpecResponse:
        """Name the metric and its target."""
        return answers.metric_spec(self._triggers.read(request).spec)

    async def GetMetrics(
        self, request: pb.GetMetricsRequest, context: Context
    ) -> pb.GetMetricsResponse:
        """Answer the workload's load, or nothing in order to hold."""
        asked = self._triggers.read(requests.reference_of(request))
        requests.check_metric_name(request.metricName, asked.spec.metric_name)
        return answers.metric_value(request.metricName, await self._evaluate(asked, context))

    async def IsActive(self, request: pb.ScaledObjectRef, context: Context) -> pb.IsActiveResponse:
        """Answer whether the workload is active."""
        asked = self._triggers.read(request)
        has_replicas = self._awake.has_replicas(asked.scaled_object, context.time_remaining())
        return answers.activity(await self._evaluate(asked, context), has_replicas=has_replicas)

    async def StreamIsActive(self, request: pb.ScaledObjectRef, context: Context) -> None:
        """Push `true` when the workload becomes active, until the stream's life is over."""
        asked = self._triggers.read(request)
        life = streams.Life(self._draining, self._stream_seconds)
        pushes = streams.Pushes()
        over = False
        while not over:
            step_seconds = self._evaluations.step_seconds(asked.spec.source)
            decided = await self._attempt(asked, context)
            now = time.monotonic()
            if decided is not None and pushes.is_due(decided, step_seconds=step_seconds, now=now):
                await context.write(pb.IsActiveResponse(result=True))
            over = await life.is_over_within(step_seconds)

    async def StreamMetricSpec(self, request: pb.ScaledObjectRef, context: Context) -> None:
        """Send the spec, which only changes with the trigger, and keep the stream open."""
        asked = self._triggers.read(request)
        await context.write(answers.metric_spec(asked.spec))
        await streams.Life(self._draining, self._stream_seconds).is_over()

    async def _evaluate(self, asked: requests.Asked, context: Context) -> decision.Decision:
        return await self._evaluations.evaluate(
            asked.scaled_object, asked.spec, context.time_remaining()
        )

    async def _attempt(self, asked: requests.Asked, context: Context) -> decision.Decision | None:
        """Evaluate without ending the stream: KEDA waits longer after each stream that failed."""
        try:
            return await self._evaluate(asked, context)
        except Exception:
            log.exception("stream.evaluation_failed", scaled_object=str(asked.scaled_object))
            return None
