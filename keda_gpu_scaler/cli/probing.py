"""Checks whether a scaler answers: its health, and then what KEDA asks about a trigger.

The channel is in plaintext, with TLS, or with TLS and a client certificate. A failed call is
explained in a sentence, followed by gRPC's own words.

This is a gRPC client that knows nothing about the server's code. Nothing in `serve` imports it.
"""

import ipaddress
import re
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from keda_gpu_scaler.pb import externalscaler_pb2, externalscaler_pb2_grpc

PORT = 6000
"""Where a scaler listens unless its settings say otherwise."""
_LAST_PORT = 65535
_SCHEME = re.compile(r"(?:http|grpc)(?P<tls>s?)://", re.IGNORECASE)
_WITH_PORT = re.compile(r"(?P<host>.+):(?P<port>[0-9]{1,5})")
_HOST = re.compile(r"[^\s:/?#@\[\]]+|\[[0-9A-Fa-f:.%]+\]")


def address(text: str, *, tls: bool) -> str:
    """Return where to connect to, as gRPC wants it: with a port, and without a URL's scheme.

    Raises:
        ValueError: the text is no address, or its scheme does not fit `tls`.
    """
    if (scheme := _SCHEME.match(text)) and bool(scheme["tls"]) is not tls:
        fix = "plaintext: leave --ca-file out" if tls else "TLS: give --ca-file, the server's CA"
        raise ValueError(f"{text!r} means {fix}, or write no scheme")
    bare = _SCHEME.sub("", text, count=1).removesuffix("/")
    if _is_ipv6(bare):
        return f"[{bare}]:{PORT}"
    if found := _WITH_PORT.fullmatch(bare):
        # gRPC takes a port number modulo 65536.
        if int(found["port"]) > _LAST_PORT:
            raise ValueError(f"{text!r} has a port that is not below {_LAST_PORT + 1}")
        return bare
    if _HOST.fullmatch(bare):
        return f"{bare}:{PORT}"
    raise ValueError(f"{text!r} is not HOST or HOST:PORT, such as keda-gpu-scaler.keda.svc:{PORT}")


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6  # noqa: PLR2004 - its name
    except ValueError:
        return False


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


_QUOTED = r'"(?:[^"\\]|\\.)*"'
_SEVERAL = re.compile(r"(?P<heading>.*?\b(?P<count>[0-9]+) mistakes? in [^\"]*?:) - (?P<rest>.+)")
_MORE = re.compile(r"(?P<mistakes>.+) (?P<more>\.\.\. and (?P<count>[0-9]+) more)")
_DASH = re.compile(rf"{_QUOTED}| - ")


def lines(said: str) -> list[str]:
    """Return an error with each mistake in a trigger on a line of its own.

    The message of a gRPC status is one line. Where the mistakes in it are not as many as it says,
    as in the message of another scaler, it stays as it is.
    """
    found = _SEVERAL.fullmatch(said)
    if found is None:
        return [said]
    more = _MORE.fullmatch(found["rest"])
    mistakes = list(_split(found["rest"] if more is None else more["mistakes"]))
    left_out = 0 if more is None else int(more["count"])
    if len(mistakes) + left_out != int(found["count"]):
        return [said]
    last = [] if more is None else [more["more"]]
    return [found["heading"], *(f"- {each}" for each in mistakes), *last]


def _split(text: str) -> Iterator[str]:
    """Yield the texts between dashes; one within quotes is part of a value."""
    start = 0
    for each in _DASH.finditer(text):
        if each[0] == " - ":
            yield text[start : each.start()]
            start = each.end()
    yield text[start:]


@dataclass(frozen=True, slots=True)
class Trigger:
    """The trigger that KEDA would send: its ScaledObject and its metadata."""

    namespace: str
    name: str
    metadata: Mapping[str, str]


@dataclass(slots=True)
class Metric:
    """A metric of a trigger."""

    name: str
    target: float
    value: float | None = None
    """What KEDA gets; None: it was not asked for, there is none, or there was an error."""
    error: str | None = None
    """Why there was no answer about the value; None: there was one, or it was not asked for."""


@dataclass(slots=True)
class Answers:
    """What a scaler answered about one trigger."""

    scaled_object: str
    metrics: list[Metric] = field(default_factory=list)
    active: bool | None = None
    """None: it was not asked for, or is not known."""
    errors: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Found:
    """What a scaler answered."""

    target: str
    health: str | None = None
    """None: it gave no answer."""
    triggers: list[Answers] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """What was wrong before a trigger was asked about."""

    @property
    def is_good(self) -> bool:
        """Whether everything was answered."""
        return not self.errors and not any(one.errors for one in self.triggers)


class Line(NamedTuple):
    """A line for people about an answer."""

    text: str
    is_trouble: bool = False
    """Whether it is about an answer that is missing or wrong."""


class Question(NamedTuple):
    """What to ask."""

    triggers: Sequence[Trigger]
    values: bool
    """Also ask GetMetrics and IsActive. Without them no source is queried: a scaler answers the
    rest while its Prometheus is down."""
    timeout_seconds: float
    """For all calls together, including the connection."""


def ask(channel: grpc.Channel, question: Question, found: Found, *, tls: bool) -> Iterator[Line]:
    """Ask a scaler, and yield a line for each answer as it comes.

    A call that fails does not end the others, as it does not for KEDA; without health there are
    none.

    Args:
        channel: the channel to the scaler; it stays open.
        question: what to ask.
        found: takes the answers.
        tls: whether the channel uses TLS; the meaning of a closed connection depends on it.
    """
    asker = _Asker(channel, time.monotonic() + question.timeout_seconds, tls=tls)
    try:
        found.health = asker.health()
    except ProbeError as error:
        found.errors.append(str(error))
        yield Line(str(error), is_trouble=True)
        return
    yield Line(f"health: {found.health}")
    for trigger in question.triggers:
        answers = Answers(f"{trigger.namespace}/{trigger.name}")
        found.triggers.append(answers)
        before = f"{answers.scaled_object}: " if len(question.triggers) > 1 else ""
        for said in asker.about(trigger, answers, values=question.values):
            yield said._replace(text=before + said.text)


class _Asker:
    def __init__(self, channel: grpc.Channel, deadline: float, *, tls: bool) -> None:
        self._health = health_pb2_grpc.HealthStub(channel)
        self._scaler = externalscaler_pb2_grpc.ExternalScalerStub(channel)
        self._deadline, self._tls = deadline, tls

    def health(self) -> str:
        request = health_pb2.HealthCheckRequest()
        answer = self._answer("health", self._health.Check, request)
        said = str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            raise ProbeError(f"health: {said}: it answers, and takes no calls now")
        return said

    def about(self, trigger: Trigger, answers: Answers, *, values: bool) -> Iterator[Line]:
        """Ask about one trigger in KEDA's order."""
        request = externalscaler_pb2.ScaledObjectRef(
            name=trigger.name, namespace=trigger.namespace, scalerMetadata=trigger.metadata
        )
        steps = [self._specs, self._values, self._activity] if values else [self._specs]
        for step in steps:
            try:
                yield from step(request, answers)
            except ProbeError as error:
                answers.errors.append(str(error))
                yield Line(str(error), is_trouble=True)
                if not answers.metrics:  # the trigger itself was refused
                    return

    def _specs(self, request: Any, answers: Answers) -> Iterator[Line]:  # noqa: ANN401 - generated
        said = self._answer("GetMetricSpec", self._scaler.GetMetricSpec, request)
        if not said.metricSpecs:
            raise ProbeError("GetMetricSpec: no metric, so that the HPA has nothing to scale on")
        for one in said.metricSpecs:
            target = _float_first(one.targetSizeFloat, one.targetSize)
            answers.metrics.append(Metric(one.metricName, target))
            yield Line(f"GetMetricSpec: {one.metricName} with target {_number(target)}")

    def _values(self, request: Any, answers: Answers) -> Iterator[Line]:  # noqa: ANN401 - generated
        for metric in answers.metrics:
            asked = externalscaler_pb2.GetMetricsRequest(
                scaledObjectRef=request, metricName=metric.name
            )
            try:
                said = self._answer(f"GetMetrics: {metric.name}", self._scaler.GetMetrics, asked)
            except ProbeError as error:
                metric.error = str(error)
                answers.errors.append(metric.error)
                yield Line(metric.error, is_trouble=True)
                continue
            if not said.metricValues:
                yield Line(f"GetMetrics: {metric.name} has no value, so the HPA holds the replicas")
                continue
            one = said.metricValues[0]
            metric.value = _float_first(one.metricValueFloat, one.metricValue)
            yield Line(f"GetMetrics: {metric.name} is {_number(metric.value)}")

    def _activity(self, request: Any, answers: Answers) -> Iterator[Line]:  # noqa: ANN401 - generated
        answers.active = self._answer("IsActive", self._scaler.IsActive, request).result
        yield Line(f"IsActive: {str(answers.active).lower()}")

    def _answer(self, name: str, method: Any, request: Any) -> Any:  # noqa: ANN401 - generated
        """Return the answer to a call, which has no deadline that the scaler would see.

        KEDA's polls have none, and the HPA's calls have one: a scaler that hears a deadline takes
        the workload for one about which the HPA asks.
        """
        call = method.future(request)
        try:
            return call.result(timeout=max(0.0, self._deadline - time.monotonic()))
        except grpc.FutureTimeoutError as error:
            call.cancel()
            raise ProbeError(f"{name}: {TOO_LATE}") from error
        except grpc.RpcError as error:
            raise ProbeError(f"{name}: {failure_text(error, tls=self._tls)}") from error


def _float_first(exact: float, whole: int) -> float:
    """Read a number as KEDA does: the float wins when it is above 0."""
    return exact if exact > 0 else whole


def _number(value: float) -> str:
    return f"{value:.12g}"
