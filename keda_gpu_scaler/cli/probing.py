"""Checks whether a scaler answers, with its health and then GetMetricSpec, as KEDA calls it.

The channel is in plaintext, with TLS, or with TLS and a client certificate. A failed call is
explained in a sentence, followed by gRPC's own words.

This is a gRPC client that knows nothing about the server's code. Nothing in `serve` imports it.
"""

import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

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
_CLOSED = ("Socket closed", "Connection reset", "Broken pipe")
CLOSED_TLS = (
    "the server closed the connection: where it asks for client certificates, --cert-file and "
    "--key-file have to be of a CA that it trusts"
)
CLOSED_PLAINTEXT = "the server closed the connection: where it speaks TLS, give --ca-file"

TOO_LATE = "no answer in time: --timeout says how long to wait"


def failure_text(error: grpc.RpcError, *, tls: bool) -> str:
    """Return the sentence for a call that failed.

    Args:
        error: what the call raised.
        tls: whether the channel uses TLS.
    """
    code, details = error.code(), error.details() or "no reason given"
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return TOO_LATE
    said = f"{code.name}: {details}"
    meaning = _meaning(details, tls=tls) if code is grpc.StatusCode.UNAVAILABLE else None
    return said if meaning is None else f"{meaning} ({said})"


def _meaning(details: str, *, tls: bool) -> str | None:
    for words, meaning in MEANINGS.items():
        if words in details:
            return meaning
    if any(words in details for words in _CLOSED):
        return CLOSED_TLS if tls else CLOSED_PLAINTEXT
    return None


@dataclass(frozen=True, slots=True)
class Tls:
    """The PEM files of a TLS connection."""

    ca_file: Path
    """The CAs; the server's certificate has to be from one of them."""
    cert_file: Path | None = None
    key_file: Path | None = None
    server_name: str | None = None
    """The name that the certificate has to have, if it is not the target's."""


def open_channel(target: str, tls: Tls | None) -> grpc.Channel:
    """Return a channel; it connects at the first call.

    gRPC uses a proxy that the environment names.

    Raises:
        ValueError: a file does not hold a certificate or key as expected.
    """
    if tls is None:
        return grpc.insecure_channel(target)
    options = [("grpc.ssl_target_name_override", tls.server_name)] if tls.server_name else []
    return grpc.secure_channel(target, _credentials(tls), options)


def _credentials(tls: Tls) -> grpc.ChannelCredentials:
    # Checked here, because gRPC would only say that a handshaker could not be made.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _require_certificates(context, tls.ca_file)
    if tls.cert_file is None or tls.key_file is None:
        return grpc.ssl_channel_credentials(tls.ca_file.read_bytes())
    _require_pair(context, tls.cert_file, tls.key_file)
    return grpc.ssl_channel_credentials(
        tls.ca_file.read_bytes(), tls.key_file.read_bytes(), tls.cert_file.read_bytes()
    )


def _require_certificates(context: ssl.SSLContext, file: Path) -> None:
    try:
        context.load_verify_locations(file)
    except ssl.SSLError as error:
        raise ValueError(f"{file} holds no certificate in PEM") from error


def _require_pair(context: ssl.SSLContext, cert_file: Path, key_file: Path) -> None:
    try:
        # With an empty password, OpenSSL does not ask for one.
        context.load_cert_chain(cert_file, key_file, password="")
    except ssl.SSLError as error:
        raise ValueError(
            f"{cert_file} and {key_file} are no certificate in PEM with its key, without a password"
        ) from error


class ProbeError(Exception):
    """The scaler does not answer as it should; the message is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """The trigger that KEDA would send: its ScaledObject and its metadata."""

    namespace: str
    name: str
    metadata: Mapping[str, str]


def ask(
    channel: grpc.Channel, trigger: Trigger, timeout_seconds: float, *, tls: bool
) -> Iterator[str]:
    """Yield a line for the health and one for each metric of a trigger, as the answers come.

    No source is queried: a scaler answers both calls while its Prometheus is down.

    Args:
        channel: the channel to the scaler; it stays open.
        trigger: the trigger for GetMetricSpec.
        timeout_seconds: limit of both calls together, including the connection.
        tls: whether the channel uses TLS; the meaning of a closed connection depends on it.

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
            raise ProbeError(f"health: {failure_text(error, tls=self._tls)}") from error
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
            raise ProbeError(f"GetMetricSpec: {failure_text(error, tls=self._tls)}") from error
        return [f"GetMetricSpec: {one.metricName} {_target(one)}" for one in found.metricSpecs]

    def _left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


def _target(metric: externalscaler_pb2.MetricSpec) -> str:
    """Read a target as KEDA does: the float wins when it is above 0."""
    exact = metric.targetSizeFloat if metric.targetSizeFloat > 0 else metric.targetSize
    return f"with target {exact:g}"
