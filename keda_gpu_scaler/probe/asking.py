"""The two questions of a probe, one after the other, within one time for both."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from keda_gpu_scaler.pb import externalscaler_pb2, externalscaler_pb2_grpc
from keda_gpu_scaler.probe import words


class ProbeError(Exception):
    """The scaler does not answer as it should; the message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """What KEDA would send: whose trigger it is, and its metadata."""

    namespace: str
    name: str
    metadata: Mapping[str, str]


def answers(
    channel: grpc.Channel, trigger: Trigger, timeout_seconds: float, *, tls: bool
) -> Iterator[str]:
    """Return a line for the health and one for each metric of a trigger, as they come.

    No source is asked: a scaler answers both while its Prometheus is down.

    Args:
        channel: to the scaler; it stays open.
        trigger: what GetMetricSpec is asked about.
        timeout_seconds: bounds both calls together, with the connection that they need.
        tls: whether the channel speaks TLS, which tells what a closed connection means.

    Raises:
        ProbeError: a call failed, or the scaler says that it does not serve.
    """
    asker = _Asker(channel, time.monotonic() + timeout_seconds, tls=tls)
    yield asker.health()
    yield from asker.metrics(trigger)


class _Asker:
    def __init__(self, channel: grpc.Channel, deadline: float, *, tls: bool) -> None:
        self._health = health_pb2_grpc.HealthStub(channel)
        self._scaler = externalscaler_pb2_grpc.ExternalScalerStub(channel)
        self._deadline, self._tls = deadline, tls

    def health(self) -> str:
        try:
            answer = self._health.Check(health_pb2.HealthCheckRequest(), timeout=self._left())
        except grpc.RpcError as error:
            raise ProbeError(f"health: {words.of(error, tls=self._tls)}") from error
        said = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            raise ProbeError(f"health: {said}: it answers, and takes no calls now")
        return f"health: {said}"

    def metrics(self, trigger: Trigger) -> list[str]:
        request = externalscaler_pb2.ScaledObjectRef(
            name=trigger.name, namespace=trigger.namespace, scalerMetadata=trigger.metadata
        )
        try:
            found = self._scaler.GetMetricSpec(request, timeout=self._left())
        except grpc.RpcError as error:
            raise ProbeError(f"GetMetricSpec: {words.of(error, tls=self._tls)}") from error
        return [f"GetMetricSpec: {one.metricName} {_target(one)}" for one in found.metricSpecs]

    def _left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


def _target(metric: externalscaler_pb2.MetricSpec) -> str:
    """Read a target as KEDA does: the float wins when it is above 0."""
    exact = metric.targetSizeFloat if metric.targetSizeFloat > 0 else metric.targetSize
    return f"with target {exact:g}"
