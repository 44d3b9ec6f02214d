"""The five RPCs of KEDA's contract: each translates between proto and one evaluation.

GetMetricSpec and StreamMetricSpec use the spec alone, so they answer while every source is down.
Errors are raised as exceptions; `interceptor` maps them to status codes.
"""
# ruff: noqa: N802 - the methods carry the names of KEDA's contract

import asyncio
import contextlib
import random
import time

import structlog

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.evaluator.evaluator import Caller, Evaluator
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.service import messages, streams
from keda_gpu_scaler.service.interceptor import Context
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access

LONGEST_SPEC_SECONDS = 86_400.0
"""Of a StreamMetricSpec."""
HPA_LOOKS, HPA_LOOK_SECONDS = 20, 0.05
"""How often and how soon a poll looks again whether the HPA asks."""

log = structlog.get_logger()


class Servicer:
    """Answers KEDA's calls for every ScaledObject."""

    def __init__(
        self,
        evaluator: Evaluator,
        *,
        access: Access,
        observe: facts.Observer,
        draining: asyncio.Event,
        stream_seconds: float,
    ) -> None:
        self._evaluator = evaluator
        self._triggers = messages.ParsedTriggers(access, observe)
        self._draining = draining
        self._stream_seconds = stream_seconds

    async def GetMetricSpec(
        self, request: pb.ScaledObjectRef, _context: Context
    ) -> pb.GetMetricSpecResponse:
        return self._triggers.read(request).metric_spec

    async def GetMetrics(
        self, request: pb.GetMetricsRequest, context: Context
    ) -> pb.GetMetricsResponse:
        trigger = self._triggers.read(request.scaledObjectRef)
        messages.check_metric_name(request.metricName, trigger.metric_names)
        if request.metricName == trigger.spec.metric_name:
            remaining_seconds = context.time_remaining()
            decision = await self._evaluator.evaluate(
                trigger.scaled_object, trigger.spec, remaining_seconds
            )
            if trigger.spec.for_formula and remaining_seconds is None:  # a poll of KEDA's
                return messages.formula_value(
                    request.metricName,
                    decision,
                    trigger.spec.threshold,
                    has_replicas=await self._has_replicas(trigger, decision),
                )
            return messages.metric_value(request.metricName, decision)
        demand = await self._evaluator.demand(
            trigger.scaled_object, trigger.spec, context.time_remaining()
        )
        return messages.demand_value(request.metricName, demand, trigger.spec.on_unknown)

    async def IsActive(self, request: pb.ScaledObjectRef, context: Context) -> pb.IsActiveResponse:
        trigger = self._triggers.read(request)
        decision = await self._evaluator.evaluate(
            trigger.scaled_object, trigger.spec, context.time_remaining()
        )
        return messages.activity(decision, has_replicas=await self._has_replicas(trigger, decision))

    async def _has_replicas(self, trigger: messages.ParsedTrigger, decision: Decision) -> bool:
        """Tell whether the HPA asks; a poll that would fail waits a second for its first call.

        KEDA takes a poll for "inactive" if it fails while a call of the HPA makes new connections
        (docs/upstream/keda-failed-poll-taken-for-inactive.md). That call is heard here meanwhile.
        """
        if not messages.depends_on_replicas(decision):
            return False
        for _ in range(HPA_LOOKS):
            if self._evaluator.has_replicas(trigger.scaled_object):
                return True
            await asyncio.sleep(HPA_LOOK_SECONDS)
        return False

    async def StreamIsActive(self, request: pb.ScaledObjectRef, context: Context) -> None:
        """Push `true` when the workload becomes active, until the stream's time is over.

        KEDA opens a stream that ended with OK again after 2 s, on any replica. This is how a new
        replica gets its share of the streams.
        """
        trigger = self._triggers.read(request)
        scaled_object = trigger.scaled_object
        ends_at = time.monotonic() + self._stream_seconds
        pushes, news = streams.Pushes(), asyncio.Event()
        with (
            self._evaluator.listen(scaled_object, news.set),
            streams.on_draining(self._draining, news.set),
        ):
            while not self._draining.is_set() and time.monotonic() < ends_at:
                news.clear()
                try:
                    decision = await self._evaluator.evaluate(
                        scaled_object, trigger.spec, context.time_remaining(), Caller.STREAM
                    )
                except Exception:
                    # The stream goes on: KEDA waits longer after each failed stream.
                    log.exception("stream.evaluation_failed", scaled_object=str(scaled_object))
                else:
                    if pushes.is_due(decision, time.monotonic()):
                        await context.write(pb.IsActiveResponse(result=True))
                seconds = self._evaluator.until_news_seconds(scaled_object, trigger.spec)
                seconds = min(seconds, streams.REPEAT_SECONDS, ends_at - time.monotonic())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await news.wait()

    async def StreamMetricSpec(self, request: pb.ScaledObjectRef, context: Context) -> None:
        """Send the spec, which only changes with the trigger, and keep the stream open.

        For each one that opens KEDA 2.21 reconciles its ScaledObject, with six requests to the API
        server, of which it sends 20 a second. So it outlives its connection's age, by half a day
        to a day, each for a time of its own: KEDA opens a thousand of them at once when it starts.
        """
        trigger = self._triggers.read(request)
        await context.write(trigger.metric_spec)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_SPEC_SECONDS * random.uniform(0.5, 1)):  # noqa: S311 - no secret
                await self._draining.wait()
