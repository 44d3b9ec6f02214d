"""External scalers that are not ours to test: real gRPC servers that answer what a test says."""

import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import trustme
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc
from tests.support import certificates

_HEALTH = health_pb2.HealthCheckResponse
ANSWER = pb.MetricSpec(metricName="gpu-utilization", targetSize=70, targetSizeFloat=70)


@dataclass
class Scaler(externalscaler_pb2_grpc.ExternalScalerServicer):  # type: ignore[misc]  # generated code has no types
    """A scaler whose health and specs are a test's."""

    serving: bool = True
    specs: tuple[Any, ...] = (ANSWER,)
    values: tuple[Any, ...] = (pb.MetricValue(metricName="gpu-utilization", metricValueFloat=130),)
    active: bool = True
    refusal: tuple[grpc.StatusCode, str] | None = None
    value_refusal: tuple[grpc.StatusCode, str] | None = None
    refused_metric: str | None = None
    """The metric whose value is refused; None: every one is."""
    asked: list[Any] = field(default_factory=list)
    deadlines: list[float] = field(default_factory=list)
    """Of the calls that ask for a value."""
    gate: threading.Event = field(default_factory=threading.Event)
    """Nothing is answered before it is set."""

    def __post_init__(self) -> None:
        """Answer at once, unless a test says otherwise."""
        self.gate.set()

    def GetMetricSpec(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.gate.wait()
        self.asked.append(request)
        if self.refusal is not None:
            context.abort(*self.refusal)
        return pb.GetMetricSpecResponse(metricSpecs=self.specs)

    def GetMetrics(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.asked.append(request)
        self.deadlines.append(context.time_remaining())
        is_refused = self.refused_metric in {None, request.metricName}
        if is_refused and self.value_refusal is not None:
            context.abort(*self.value_refusal)
        return pb.GetMetricsResponse(metricValues=self.values)

    def IsActive(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.asked.append(request)
        self.deadlines.append(context.time_remaining())
        return pb.IsActiveResponse(result=self.active)


def credentials(
    leaf: trustme.LeafCert, client_ca: trustme.CA | None = None
) -> grpc.ServerCredentials:
    """Return what a server shows, and which CA its clients have to be of."""
    pair = (certificates.key_of(leaf), certificates.chain(leaf))
    roots = None if client_ca is None else client_ca.cert_pem.bytes()
    return grpc.ssl_server_credentials([pair], roots, client_ca is not None)


@contextmanager
def serving(scaler: Scaler, shown: grpc.ServerCredentials | None = None) -> Iterator[int]:
    """Serve a scaler on a free port of 127.0.0.1, with TLS where there is something to show."""
    server = grpc.server(futures.ThreadPoolExecutor(4))
    state = health.HealthServicer()
    state.set("", _HEALTH.SERVING if scaler.serving else _HEALTH.NOT_SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(state, server)
    externalscaler_pb2_grpc.add_ExternalScalerServicer_to_server(scaler, server)
    add, more = (server.add_secure_port, (shown,)) if shown else (server.add_insecure_port, ())
    port = add("127.0.0.1:0", *more)
    server.start()
    try:
        yield port
    finally:
        scaler.gate.set()
        server.stop(None).wait()
