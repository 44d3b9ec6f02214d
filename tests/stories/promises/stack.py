"""The scaler on a Prometheus, behind a real gRPC channel, asked as KEDA asks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from keda_gpu_scaler import service
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from keda_gpu_scaler.promql import Policy
from keda_gpu_scaler.settings import PrometheusSettings
from keda_gpu_scaler.sources.prometheus.client import PrometheusClient
from keda_gpu_scaler.sources.prometheus.source import PrometheusSource
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access
from testbed.triggers import reference, request

HANG_SECONDS = 30.0
"""Bounds a test that hangs; no answer takes this long."""


@dataclass(frozen=True, slots=True)
class Poll:
    """What KEDA learns from one trigger in one poll."""

    target: float
    value: float | None
    """None: an empty list, which holds."""
    active: bool


@dataclass(slots=True)
class Stack:
    """A running scaler and a client of it."""

    stub: Any
    seen: list[facts.Fact] = field(default_factory=list)

    async def target(self, **metadata: str) -> float:
        """Ask GetMetricSpec."""
        answer = await self.stub.GetMetricSpec(reference(**metadata), timeout=HANG_SECONDS)
        return float(answer.metricSpecs[0].targetSizeFloat)

    async def value(
        self, deadline_seconds: float | None = None, /, **metadata: str
    ) -> float | None:
        """Ask GetMetrics: as a poll does, without a deadline, unless one is given."""
        metric_name = metadata.get("metricName", "gpu-utilization")
        asked = request(reference(**metadata), metric_name)
        async with asyncio.timeout(HANG_SECONDS):
            answer = await self.stub.GetMetrics(asked, timeout=deadline_seconds)
        return next((float(one.metricValueFloat) for one in answer.metricValues), None)

    async def active(self, deadline_seconds: float | None = None, /, **metadata: str) -> bool:
        """Ask IsActive: as a poll does, without a deadline, unless one is given."""
        async with asyncio.timeout(HANG_SECONDS):
            answer = await self.stub.IsActive(reference(**metadata), timeout=deadline_seconds)
        return bool(answer.result)

    async def poll(self, **metadata: str) -> Poll:
        """Ask what KEDA asks in one poll, in its order."""
        return Poll(
            await self.target(**metadata),
            await self.value(**metadata),
            await self.active(**metadata),
        )

    def queries(self, kind: str) -> int:
        """Count the queries of one kind that went to the source."""
        return sum(isinstance(fact, facts.Queried) and fact.query == kind for fact in self.seen)


@asynccontextmanager
async def running(
    url: str,
    own_promql: Policy = Policy.NAMESPACED,
    without_gpus: frozenset[str] = frozenset(),
    **settings: Any,
) -> AsyncIterator[Stack]:
    """Run the scaler on the Prometheus at `url`; the step is a second unless told otherwise."""
    seen: list[facts.Fact] = []
    configured = PrometheusSettings.model_validate({"url": url, "step": "1s", **settings})
    client = PrometheusClient("default", configured, seen.append)
    source = PrometheusSource(client, without_gpus=without_gpus)
    evaluator = Evaluator({"default": source.ports()}, seen.append)
    server = service.GrpcServer(
        evaluator,
        access=Access({"default": EVERY_NAMESPACE}, own_promql=own_promql),
        address="127.0.0.1:0",
        observe=seen.append,
        max_concurrent_rpcs=5000,
        connection_max_age_seconds=600,
    )
    port = await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Stack(externalscaler_pb2_grpc.ExternalScalerStub(channel), seen)
    finally:
        await server.stop(5)
        await evaluator.close()
        await source.close()
