"""The answers that KEDA would get: from the scaler over gRPC, from the router over HTTP.

Errors are answers here, as for KEDA: a failed call says nothing about load or activity.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean

import grpc
import httpx
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.pb import externalscaler_pb2, externalscaler_pb2_grpc
from keda_gpu_scaler.simulator import exposition
from keda_gpu_scaler.simulator.cluster import Key
from keda_gpu_scaler.simulator.demo import scenario

_CALL_SECONDS = 5
"""KEDA sets no deadline when it polls, but the demo must end."""
_UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"
"""The metric of the average recipe."""


class Said(msgspec.Struct, frozen=True):
    """What the scaler says of its last answer."""

    state: str = ""
    reason: str = ""


class _List(msgspec.Struct):
    triggers: list[Said]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one round of calls said about the trigger."""

    metrics: tuple[rules.Metric, ...] = ()
    active: bool | None = None
    error: str = ""
    said: Said = field(default_factory=Said)

    @property
    def value(self) -> float | None:
        """The first metric's value, for display."""
        return self.metrics[0].value if self.metrics else None

    @property
    def problem(self) -> str:
        """The error of a call, or else the reason that the scaler gives."""
        return self.error or self.said.reason


class Scaler:
    """The external scaler, as KEDA calls it for one trigger."""

    def __init__(self, channel: grpc.aio.Channel, client: httpx.AsyncClient) -> None:
        """Call the scaler through this channel; read its HTTP port through this client."""
        self._stub = externalscaler_pb2_grpc.ExternalScalerStub(channel)
        self._client = client
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
            return Answer(error=f"{error.code().name}: {error.details()}", said=await self._said())
        return Answer(tuple(metrics), active.result, said=await self._said())

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

    async def _said(self) -> Said:
        """Return the state and the reason of the answers just given."""
        with contextlib.suppress(httpx.HTTPError, msgspec.MsgspecError):
            page = await self._client.get(f"/api/v1/triggers/{scenario.SCALED_OBJECT.namespace}")
            for said in msgspec.json.decode(page.content, type=_List).triggers:
                return said
        return Said()


def _number(exact: float, rounded: int) -> float:
    """Read a pair of fields as KEDA does: the float wins when it is above 0."""
    return exact if exact > 0 else rounded


@dataclass(frozen=True, slots=True)
class Shown:
    """What the simulator's page shows of one workload."""

    offered: float | None = None
    """The load at the router; None: the page cannot be read."""
    percents: Sequence[float] = ()
    """The utilization of each GPU of its pods."""

    @property
    def utilization(self) -> float | None:
        """The mean over all GPUs; None: no pod has one."""
        return mean(self.percents) if self.percents else None


def usual(shown: Shown) -> Answer:
    """Return the answer of the usual recipe: KEDA's prometheus trigger with `avg()`.

    An empty answer is 0, which is the trigger's default (`ignoreNullValues`), and anything above 0
    is active. `AverageValue` is the default of a ScaledObject.
    """
    if shown.offered is None:
        return Answer(error="the query failed")
    value = shown.utilization or 0.0
    return Answer((rules.Metric(value=value, target=scenario.THRESHOLD),), value > 0)


class Exporter:
    """The simulator: reads its page and changes one workload."""

    def __init__(self, client: httpx.AsyncClient, workload: Key) -> None:
        """Reach the simulator through this client."""
        self._client, self._workload = client, workload

    async def apply(self, load: float, replicas: int) -> None:
        """Offer this load to this many replicas; the next request replaces one that was lost."""
        change = {
            "load": load,
            "replicas": replicas,
            "startup_seconds": scenario.STARTUP_SECONDS,
        }
        with contextlib.suppress(httpx.HTTPError):
            await self._client.put("/workloads/{}/{}".format(*self._workload), json=change)

    async def look(self) -> Shown:
        """Return what the page shows of the workload."""
        try:
            page = (await self._client.get("/metrics")).text
        except httpx.HTTPError:
            return Shown()
        return read(page, self._workload)


def read(page: str, workload: Key) -> Shown:
    """Return what an exporter's page shows of a workload."""
    router = {"namespace": workload.namespace, "workload": workload.name}
    offered, percents = None, []
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name == exposition.ROUTER_METRIC and sample.labels == router:
                offered = float(sample.value)
            elif sample.name == _UTILIZATION and _is_of(workload, sample.labels):
                percents.append(float(sample.value))
    return Shown(offered, tuple(percents))


def _is_of(workload: Key, labels: dict[str, str]) -> bool:
    """Tell whether a GPU's labels name a pod of the workload, the only one in its namespace."""
    return labels.get("namespace") == workload.namespace
