"""Asks a scaler what KEDA asks, and explains what is wrong: what `probe` does.

The channel is in plaintext, with TLS, or with TLS and a client certificate. A failed call is
explained in a sentence, followed by gRPC's own words. This is a gRPC client that knows nothing
about the server's code.
"""

import os
import re
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keda_gpu_scaler import errors
from keda_gpu_scaler.spec.spec import ScaledObject

# Without it, C-core writes messages of its own about handshakes. It is read when gRPC is loaded.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.pb import externalscaler_pb2_grpc

PORT = 6000
_TARGET = re.compile(r"(?P<host>[^\s:/?#@\[\]]+|\[[0-9A-Fa-f:.%]+\])(:(?P<port>[0-9]{1,5}))?")
_LAST_PORT = 65535
_NO_ADDRESS = "the name has no address: check the name and the namespace of the Service"
_NO_CA = "no CA in --ca-file has issued the server's certificate"
_CLOSED = (
    "the server closed the connection: it may require TLS (--ca-file), or a client certificate "
    "from a CA that it trusts (--cert-file, --key-file)"
)
_MEANINGS = {
    "errors resolving": _NO_ADDRESS,
    "resolution failed": _NO_ADDRESS,
    "Connection refused": "nothing listens there: check the port, and whether the scaler runs",
    "WRONG_VERSION_NUMBER": "the server does not use TLS: leave out --ca-file",
    "unable to get local issuer certificate": _NO_CA,
    "self-signed certificate": _NO_CA,
    "certificate has expired": "the server's certificate has expired",
    "Hostname Verification Check failed": (
        "the server's certificate is for another name: give this name with --server-name"
    ),
    "Failed parsing HTTP/2": f"this is no gRPC port: the scaler's is {PORT} by default",
    "Socket closed": _CLOSED,
    "Connection reset": _CLOSED,
    "Broken pipe": _CLOSED,
}
"""Explanations, by a part of gRPC's message about a connection that failed."""
_TOO_LATE = "no answer within --timeout: a NetworkPolicy or a firewall may drop the packets"


def address(text: str) -> str:
    """Return where to connect to, with a port; ValueError: the text is no address."""
    match = _TARGET.fullmatch(text)
    port = int((match and match["port"]) or PORT)
    if match is None or port > _LAST_PORT:  # which gRPC would take modulo 65536
        what = f"{text!r} is not HOST or HOST:PORT, such as keda-gpu-scaler.keda.svc:{PORT}"
        raise ValueError(what)
    return f"{match['host']}:{port}"


def reference(scaled_object: ScaledObject, metadata: Mapping[str, str]) -> pb.ScaledObjectRef:
    return pb.ScaledObjectRef(
        name=scaled_object.name, namespace=scaled_object.namespace, scalerMetadata=metadata
    )


def open_channel(
    target: str,
    ca_file: Path | None,
    cert_file: Path | None,
    key_file: Path | None,
    server_name: str | None,
) -> grpc.Channel:
    """Return a channel; it connects at the first call, by the proxy of the environment.

    ValueError if a file does not hold what it should: gRPC would only say that a handshaker could
    not be made.
    """
    if ca_file is None:
        return grpc.insecure_channel(target)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(ca_file)
    except ssl.SSLError as error:
        raise ValueError(f"{ca_file} contains no certificate in PEM") from error
    pair: tuple[bytes, bytes] | tuple[()] = ()
    if cert_file is not None and key_file is not None:
        try:
            # With an empty password, OpenSSL does not ask for one.
            context.load_cert_chain(cert_file, key_file, password="")
        except ssl.SSLError as error:
            pair_names = f"{cert_file} and {key_file}"
            what = f"{pair_names} are not a certificate in PEM and its unencrypted key"
            raise ValueError(what) from error
        pair = key_file.read_bytes(), cert_file.read_bytes()
    options = [("grpc.ssl_target_name_override", server_name)] if server_name else []
    credentials = grpc.ssl_channel_credentials(ca_file.read_bytes(), *pair)
    return grpc.secure_channel(target, credentials, options)


class Scaler:
    """Calls one scaler as KEDA does, and says what it answers, all within one time limit."""

    def __init__(
        self,
        channel: grpc.Channel,
        timeout_seconds: float,
        say: Callable[[str], None],
        complain: Callable[[str], object],
    ) -> None:
        """Take the channel, and what prints an answer and a failure; both get plain text."""
        self._say, self._complain = say, complain
        self._health = health_pb2_grpc.HealthStub(channel)
        self._scaler = externalscaler_pb2_grpc.ExternalScalerStub(channel)
        self._deadline = time.monotonic() + timeout_seconds
        self.is_good = True

    def ask(
        self, triggers: Sequence[pb.ScaledObjectRef], *, values: bool, sources: bool = False
    ) -> None:
        """Say each answer as it comes, in KEDA's order, and what is wrong.

        A call that fails does not end the others, as it does not for KEDA; without health, or where
        a trigger is refused, there are none. Without values, GetMetrics and IsActive are not called
        and no source is queried: a scaler answers the rest while its Prometheus is down. With
        `sources`, the scaler says whether each of its own answers.
        """
        answer = self._call("health", self._health.Check, health_pb2.HealthCheckRequest())
        if answer is None:
            return
        health = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            self._fail(f"health: {health}: it answers, but accepts no calls now")
            return
        self._say(errors.without_controls(f"health: {health}"))
        if sources:
            request = health_pb2.HealthCheckRequest(service="sources")
            if self._call("sources", self._health.Check, request) is not None:
                self._say("sources: each of them answers")
        for trigger in triggers:
            before = f"{trigger.namespace}/{trigger.name}: " if len(triggers) > 1 else ""
            self._ask_about(trigger, before, values=values)

    def _ask_about(self, trigger: pb.ScaledObjectRef, before: str, *, values: bool) -> None:
        name = f"{before}GetMetricSpec"
        specs = self._call(name, self._scaler.GetMetricSpec, trigger)
        if specs is None:
            return
        if not specs.metricSpecs:
            self._fail(f"{name}: no metric: the HPA has nothing to scale on")
            return
        for spec in specs.metricSpecs:
            target = _float_first(spec.targetSizeFloat, spec.targetSize)
            self._say(
                errors.without_controls(f"{name}: {spec.metricName} with target {target:.12g}")
            )
        if not values:
            return
        for spec in specs.metricSpecs:
            name = f"{before}GetMetrics: {spec.metricName}"
            request = pb.GetMetricsRequest(scaledObjectRef=trigger, metricName=spec.metricName)
            answer = self._call(name, self._scaler.GetMetrics, request)
            if answer is not None and answer.metricValues:
                value = answer.metricValues[0]
                number = _float_first(value.metricValueFloat, value.metricValue)
                self._say(errors.without_controls(f"{name} is {number:.12g}"))
            elif answer is not None:
                self._say(
                    errors.without_controls(f"{name} has no value, so the HPA holds the replicas")
                )
        activity = self._call(f"{before}IsActive", self._scaler.IsActive, trigger)
        if activity is not None:
            self._say(errors.without_controls(f"{before}IsActive: {str(activity.result).lower()}"))

    def _call(self, name: str, method: Any, request: Any) -> Any:  # noqa: ANN401 - generated code has no types
        """Return the answer to a call, which has no deadline that the scaler would see; None: none.

        KEDA's polls have none, and the HPA's calls have one: a scaler that sees a deadline takes
        the workload for one about which the HPA asks.
        """
        future = method.future(request)
        try:
            return future.result(timeout=max(0.0, self._deadline - time.monotonic()))
        except grpc.FutureTimeoutError:
            future.cancel()
            self._fail(f"{name}: {_TOO_LATE}")
        except grpc.RpcError as error:
            self._fail(f"{name}: {_failure_text(error)}")
        return None

    def _fail(self, what: str) -> None:
        self.is_good = False
        self._complain(errors.without_controls(what))


def _failure_text(error: grpc.RpcError) -> str:
    """Return the sentence for a call that failed; gRPC's words are in parentheses."""
    code, details = error.code(), error.details() or "no reason given"
    words = f"{code.name}: {details}"
    if code is not grpc.StatusCode.UNAVAILABLE:
        return words
    meaning = next((_MEANINGS[part] for part in _MEANINGS if part in details), None)
    return words if meaning is None else f"{meaning} ({words})"


def _float_first(exact: float, whole: int) -> float:
    """Read a number as KEDA does: the float wins when it is above 0."""
    return exact if exact > 0 else whole
