"""Asks a scaler for its health, and then what KEDA asks about a trigger.

The channel is in plaintext, with TLS, or with TLS and a client certificate. A failed call is
explained in a sentence, followed by gRPC's own words. This is a gRPC client that knows nothing
about the server's code. Nothing in `serve` imports it.
"""

import ssl
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from keda_gpu_scaler.pb import externalscaler_pb2, externalscaler_pb2_grpc

MEANINGS = {
    "errors resolving": "the name cannot be resolved",
    "resolution failed": "the name cannot be resolved",
    "Connection refused": "nothing listens there",
    "WRONG_VERSION_NUMBER": "the server speaks no TLS: leave --ca-file out",
    "unable to get local issuer certificate": "the server's certificate is of no CA in --ca-file",
    "self-signed certificate": "the server's certificate is of no CA in --ca-file",
    "certificate has expired": "the server's certificate has expired",
    "Hostname Verification Check failed": (
        "the server's certificate is for another name: --server-name says which to expect"
    ),
    "Failed parsing HTTP/2": "the server speaks no gRPC: is that its HTTP port?",
}
"""Explanations, by a part of gRPC's message about a connection that failed."""
CLOSED_TLS = (
    "the server closed the connection: where it asks for client certificates, --cert-file and "
    "--key-file have to be of a CA that it trusts"
)
CLOSED_PLAINTEXT = "the server closed the connection: where it speaks TLS, give --ca-file"
TOO_LATE = "no answer in time: --timeout says how long to wait"
_CLOSED = ("Socket closed", "Connection reset", "Broken pipe")


class Trigger(NamedTuple):
    """The trigger that KEDA would send: its ScaledObject and its metadata."""

    namespace: str
    name: str
    metadata: Mapping[str, str]


class ProbeError(Exception):
    """The scaler does not answer as it should; the message is a sentence for the user."""


def open_channel(
    target: str,
    ca_file: Path | None,
    cert_file: Path | None,
    key_file: Path | None,
    server_name: str | None,
) -> grpc.Channel:
    """Return a channel; it connects at the first call, by the proxy of the environment.

    Raises:
        ValueError: a file does not hold a certificate or key as expected. gRPC would only say that
            a handshaker could not be made.
    """
    if ca_file is None:
        return grpc.insecure_channel(target)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(ca_file)
    except ssl.SSLError as error:
        raise ValueError(f"{ca_file} holds no certificate in PEM") from error
    pair: tuple[bytes, bytes] | tuple[()] = ()
    if cert_file is not None and key_file is not None:
        try:
            # With an empty password, OpenSSL does not ask for one.
            context.load_cert_chain(cert_file, key_file, password="")
        except ssl.SSLError as error:
            files = f"{cert_file} and {key_file}"
            words = f"{files} are no certificate in PEM with its key, without a password"
            raise ValueError(words) from error
        pair = key_file.read_bytes(), cert_file.read_bytes()
    options = [("grpc.ssl_target_name_override", server_name)] if server_name else []
    credentials = grpc.ssl_channel_credentials(ca_file.read_bytes(), *pair)
    return grpc.secure_channel(target, credentials, options)


class Scaler:
    """Calls one scaler as KEDA does."""

    def __init__(self, channel: grpc.Channel, timeout_seconds: float, *, tls: bool) -> None:
        """Take a channel, which stays open; the time is for all calls together and the connection.

        What a closed connection means depends on TLS.
        """
        self._health = health_pb2_grpc.HealthStub(channel)
        self._scaler = externalscaler_pb2_grpc.ExternalScalerStub(channel)
        self._deadline, self._tls = time.monotonic() + timeout_seconds, tls

    def answers(self, triggers: list[Trigger], *, values: bool) -> Iterator[str | ProbeError]:
        """Yield each answer in words as it comes, in KEDA's order, and what is wrong.

        A call that fails does not end the others, as it does not for KEDA; without health, or where
        a trigger is refused, there are none. Without values, GetMetrics and IsActive are not called
        and no source is queried: a scaler answers the rest while its Prometheus is down.
        """
        try:
            answer = self._call("health", self._health.Check, health_pb2.HealthCheckRequest())
        except ProbeError as error:
            yield error
            return
        health = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            yield ProbeError(f"health: {health}: it answers, and takes no calls now")
            return
        yield f"health: {health}"
        for trigger in triggers:
            before = f"{trigger.namespace}/{trigger.name}: " if len(triggers) > 1 else ""
            for line in self._about(trigger, values=values):
                is_error = isinstance(line, ProbeError)
                yield ProbeError(f"{before}{line}") if is_error else f"{before}{line}"

    def _about(self, trigger: Trigger, *, values: bool) -> Iterator[str | ProbeError]:
        reference = externalscaler_pb2.ScaledObjectRef(
            name=trigger.name, namespace=trigger.namespace, scalerMetadata=trigger.metadata
        )
        try:
            answer = self._call("GetMetricSpec", self._scaler.GetMetricSpec, reference)
        except ProbeError as error:
            yield error
            return
        specs = answer.metricSpecs
        if not specs:
            yield ProbeError("GetMetricSpec: no metric, so that the HPA has nothing to scale on")
            return
        for spec in specs:
            target = _float_first(spec.targetSizeFloat, spec.targetSize)
            yield f"GetMetricSpec: {spec.metricName} with target {target:.12g}"
        if values:
            calls = [partial(self._value, reference, spec.metricName) for spec in specs]
            for call in [*calls, partial(self._activity, reference)]:
                try:
                    yield call()
                except ProbeError as error:
                    yield error

    def _value(self, reference: Any, metric: str) -> str:  # noqa: ANN401 - generated code has no types
        name = f"GetMetrics: {metric}"
        request = externalscaler_pb2.GetMetricsRequest(scaledObjectRef=reference, metricName=metric)
        values = self._call(name, self._scaler.GetMetrics, request).metricValues
        if not values:
            return f"{name} has no value, so the HPA holds the replicas"
        return f"{name} is {_float_first(values[0].metricValueFloat, values[0].metricValue):.12g}"

    def _activity(self, reference: Any) -> str:  # noqa: ANN401
        active = self._call("IsActive", self._scaler.IsActive, reference).result
        return f"IsActive: {str(active).lower()}"

    def _call(self, name: str, method: Any, request: Any) -> Any:  # noqa: ANN401 - generated code has no types
        """Return the answer to a call, which has no deadline that the scaler would see.

        KEDA's polls have none, and the HPA's calls have one: a scaler that sees a deadline takes
        the workload for one about which the HPA asks.
        """
        future = method.future(request)
        try:
            return future.result(timeout=max(0.0, self._deadline - time.monotonic()))
        except grpc.FutureTimeoutError as error:
            future.cancel()
            raise ProbeError(f"{name}: {TOO_LATE}") from error
        except grpc.RpcError as error:
            raise ProbeError(f"{name}: {_failure_text(error, tls=self._tls)}") from error


def _failure_text(error: grpc.RpcError, *, tls: bool) -> str:
    """Return the sentence for a call that failed; gRPC's words are in parentheses."""
    code, details = error.code(), error.details() or "no reason given"
    words = f"{code.name}: {details}"
    if code is not grpc.StatusCode.UNAVAILABLE:
        return words
    meaning = next((MEANINGS[part] for part in MEANINGS if part in details), None)
    if meaning is None and any(part in details for part in _CLOSED):
        meaning = CLOSED_TLS if tls else CLOSED_PLAINTEXT
    return words if meaning is None else f"{meaning} ({words})"


def _float_first(exact: float, whole: int) -> float:
    """Read a number as KEDA does: the float wins when it is above 0."""
    return exact if exact > 0 else whole
