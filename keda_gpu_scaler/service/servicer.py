"""The five RPCs of KEDA's contract: each translates between proto and one evaluation.

GetMetricSpec and StreamMetricSpec use the spec alone, so they answer while every source is down.
Errors are raised as exceptions; `interceptor` maps them to status codes.
"""
# ruff: noqa: N802 - the methods carry the names of KEDA's contract

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Protocol

import structlog

from keda_gpu_scaler.decision.decision import Decision
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.service import requests, responses, streams
from keda_gpu_scaler.service.interceptor import Context
from keda_gpu_scaler.service.responses import HpaCallers
from keda_gpu_scaler.spec.demand import Demand
from keda_gpu_scaler.spec.spec import ScaledObject, TriggerSpec
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access


class Evaluations(Protocol):
    """Decides the load of a trigger and whether its workload is active."""

    async def evaluate(
        self,
        scaled_object: ScaledObject,
        trigger_spec: TriggerSpec,
        timeout_seconds: float | None,
        /,
        *,
        wait_for_fresh: bool = False,
    ) -> Decision:
        """Decide within the caller's remaining time; the error of a source gives a decision too.

        Without a deadline the evaluation takes a few seconds at most: KEDA sets no deadline, and a
        stopping server waits for open calls.

        Args:
            scaled_object: the ScaledObject of the trigger.
            trigger_spec: the parsed trigger.
            timeout_seconds: the time left until the caller's deadline; None: no deadline.
            wait_for_fresh: wait for a snapshot that is under way, even if there is a usable one. A
                stream would otherwise see it only at its next evaluation.
        """

    async def demand(
        self,
        scaled_object: ScaledObject,
        trigger_spec: TriggerSpec,
        timeout_seconds: float | None,
        /,
    ) -> Demand:
        """Return the demand of a trigger that has a demandQuery, within the same time limits."""

    def until_news_seconds(
        self, scaled_object: ScaledObject, trigger_spec: TriggerSpec, /
    ) -> float:
        """Return the seconds after an evaluation until there can be a new result."""

    def listen(
        self, scaled_object: ScaledObject, call: Callable[[], None], /
    ) -> contextlib.AbstractContextManager[None]:
        """Call `call` if there is something new earlier than that, while the context lasts."""


log = structlog.get_logger()


class Servicer:
    """Answers KEDA's calls for every ScaledObject."""

    def __init__(
        self,
        evaluations: Evaluations,
        *,
        access: Access,
        observe: facts.Observer,
        draining: asyncio.Event,
        stream_seconds: float,
    ) -> None:
        self._evaluations = evaluations
        self._triggers = requests.Triggers(access, observe)
        self._observe = observe
        self._hpa_callers = HpaCallers()
        self._draining = draining
        self._stream_seconds = stream_seconds

    async def GetMetricSpec(
        self, request: pb.ScaledObjectRef, _context: Context
    ) -> pb.GetMetricSpecResponse:
        """Name the metric and its target."""
        return self._triggers.read(request).metric_spec

    async def GetMetrics(
        self, request: pb.GetMetricsRequest, context: Context
    ) -> pb.GetMetricsResponse:
        """Answer with the workload's load or demand, or with no value to hold the replicas."""
        trigger = self._triggers.read(requests.reference_of(request))
        name = requests.metric_name(request.metricName, trigger.metric_names)
        if name == trigger.spec.metric_name:
            decision = await self._evaluate(trigger, context)
            return responses.metric_value(request.metricName, decision)
        demand = await self._evaluations.demand(
            trigger.scaled_object, trigger.spec, context.time_remaining()
        )
        return responses.demand_value(request.metricName, demand, trigger.spec.on_unknown)

    async def IsActive(self, request: pb.ScaledObjectRef, context: Context) -> pb.IsActiveResponse:
        """Answer whether the workload is active."""
        trigger = self._triggers.read(request)
        self._hpa_callers.note(trigger.scaled_object, context.time_remaining())
        decision = await self._evaluate(trigger, context)
        has_replicas = self._hpa_callers.has_replicas(trigger.scaled_object)
        return responses.activity(decision, has_replicas=has_replicas)

    async def StreamIsActive(self, request: pb.ScaledObjectRef, context: Context) -> None:
        """Push `true` when the workload becomes active, until the stream's time is over."""
        trigger = self._triggers.read(request)
        scaled_object = trigger.scaled_object
        life = streams.Life(self._draining, self._stream_seconds)
        pushes, news = streams.Pushes(), asyncio.Event()
        over = False
        with self._evaluations.listen(scaled_object, news.set), life.heard_by(news):
            while not over:
                news.clear()
                try:
                    decision = await self._evaluate(trigger, context, wait_for_fresh=True)
                except Exception:
                    # The stream goes on: KEDA waits longer after each failed stream.
                    log.exception("stream.evaluation_failed", scaled_object=str(scaled_object))
                else:
                    if pushes.is_due(decision, time.monotonic()):
                        await context.write(pb.IsActiveResponse(result=True))
                seconds = self._evaluations.until_news_seconds(scaled_object, trigger.spec)
                over = await life.is_over_within(min(seconds, streams.REPEAT_SECONDS), news)

    async def StreamMetricSpec(self, request: pb.ScaledObjectRef, context: Context) -> None:
        """Send the spec, which only changes with the trigger, and keep the stream open.

        It need not move to new replicas: it outlives the age of its connection.
        """
        trigger = self._triggers.read(request)
        await context.write(trigger.metric_spec)
        await streams.Life(self._draining, streams.spec_seconds()).is_over()

    async def _evaluate(
        self, trigger: requests.Trigger, context: Context, *, wait_for_fresh: bool = False
    ) -> Decision:
        decision = await self._evaluations.evaluate(
            trigger.scaled_object,
            trigger.spec,
            context.time_remaining(),
            wait_for_fresh=wait_for_fresh,
        )
        self._observe(facts.CallDecided(decision))
        return decision
