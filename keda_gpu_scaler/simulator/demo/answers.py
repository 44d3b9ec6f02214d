"""The answers that KEDA would get: from the scaler over gRPC, from the router over HTTP.

Errors are answers here, as for KEDA: a failed call says nothing about load or activity.
"""

import contextlib
from dataclasses import dataclass

import grpc
import httpx
from prometheus_client.parser import text_string_to_metric_families

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.pb import externalscaler_pb2, externalscaler_pb2_grpc
from keda_gpu_scaler.simulator import exposition
from keda_gpu_scaler.simulator.demo import scenario

_CALL_SECONDS = 5
"""KEDA sets no deadline when it polls, but the demo must end."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one round of calls said about the trigger."""

    metrics: tuple[rules.Metric, ...] = ()
    active: bool | None = None
    error: str = ""

    @property
    def value(self) -> float | None:
        """The first metric's value, for display."""
        return self.metrics[0].value if self.metrics else None


class Scaler:
    """The external scaler, as KEDA calls it for one trigger."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        """Call the scaler through this channel."""
        self._stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)
        self._trigger = externalscaler_pb2.ScaledObjectRef(
            name=scenario.SCALED_OBJECT.name,
            namespace=scenario.SCALED_OBJECT.namespace,
            scalerMetadata=scenario.TRIGGER,
        )

    async def ask(self) -> Answer:
        """Get the specs, then each value, then the activity; one error discards them all."""
        try:
            specs = await self._stub.GetMetricSpec(self._trigger, timeout=_CALL_SECONDS)
            # The scaler takes a call with a deadline for one of the HPA; it limits its own time.
            metrics = [await self._metric(each) for each in specs.metricSpecs]
            active = await self._stub.IsActive(self._trigger)
        except grpc.aio.AioRpcError as error:
            return Answer(error=f"{error.code().name}: {error.details()}")
        return Answer(tuple(metrics), active.result)

    async def _metric(self, each: externalscaler_pb2.MetricSpec) -> rules.Metric:
        request = externalscaler_pb2.GetMetricsRequest(
            scaledObjectRef=self._trigger, metricName=each.metricName
        )
        found = await self._stub.GetMetrics(request)
        values = [_number(one.metricValueFloat, one.metricValue) for one in found.metricValues]
        return rules.Metric(
            value=sum(values) if values else None,
            target=_number(each.targetSizeFloat, each.targetSize),
        )


def _number(exact: float, rounded: int) -> float:
    """Read a pair of fields as KEDA does: the float wins when it is above 0."""
    return exact if exact > 0 else rounded


class Exporter:
    """The simulator: reads its page and changes its workload."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        """Reach the simulator through this client."""
        self._client = client

    async def apply(self, load: float, replicas: int) -> None:
        """Offer this load to this many replicas; the next request replaces one that was lost."""
        namespace, name = scenario.SCALED_OBJECT
        change = {
            "load": load,
            "replicas": replicas,
            "startup_seconds": scenario.STARTUP_SECONDS,
        }
        with contextlib.suppress(httpx.HTTPError):
            await self._client.put(f"/workloads/{namespace}/{name}", json=change)

    async def offered(self) -> float | None:
        """Return the load at the router; None if its metric cannot be read."""
        try:
            page = (await self._client.get("/metrics")).text
        except httpx.HTTPError:
            return None
        return offered_load(page)


def offered_load(page: str) -> float | None:
    """Return the router's metric for the demo's workload on an exporter page."""
    namespace, name = scenario.SCALED_OBJECT
    labels = {"namespace": namespace, "workload": name}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name == exposition.ROUTER_METRIC and sample.labels == labels:
                return float(sample.value)
    return None
