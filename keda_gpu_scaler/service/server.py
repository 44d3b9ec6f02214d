"""The gRPC server: its port, its TLS, its health service, its start and its stop.

Of the health service it offers `Check`, which says SERVING as long as the port is open. About the
service `sources` it says SERVING while each source answers, and else fails with what is wrong: for
`helm test`, not for probes of the kubelet. A `Watch` would be a stream that says nothing more and
holds a stopping server.

gRPC's library takes TLS 1.2 and 1.3 and nothing older. It asks for the certificate in each
handshake; open connections and their streams go on unchanged.
"""

import asyncio
from typing import TYPE_CHECKING

import grpc
from grpc_health.v1 import health_pb2 as pb
from grpc_reflection.v1alpha import reflection

from keda_gpu_scaler import errors
from keda_gpu_scaler.evaluator.evaluator import Evaluator
from keda_gpu_scaler.pb import externalscaler_pb2, externalscaler_pb2_grpc
from keda_gpu_scaler.service import servicer
from keda_gpu_scaler.service.interceptor import CallInterceptor, Context, status_message
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access

if TYPE_CHECKING:
    from keda_gpu_scaler.transport.certificates import Certificate, CertificateFiles


SERVICE_NAME = externalscaler_pb2.DESCRIPTOR.services_by_name["ExternalScaler"].full_name
HEALTH_NAME = pb.DESCRIPTOR.services_by_name["Health"].full_name

# A ScaledObject with all its triggers has to fit into etcd's 1.5 MiB, and a trigger has a few
# hundred characters. This leaves room for long values from the environment.
MAX_REQUEST_BYTES = 1024 * 1024
# gRPC spreads the age of connections by 10 % either way. A stream may be opened at the very end of
# a connection's age and then lives for the unspread age; 30 s are for its last evaluation.
_GRACE_SECONDS_BEYOND_STREAMS = 30.0
_SOURCES_WAIT_SECONDS = 15.0
"""A little longer than a source has by default for its first answer."""


class GrpcServer:
    """A gRPC server that starts once and stops once."""

    def __init__(  # noqa: PLR0913 - the composition root's values, all by name
        self,
        evaluator: Evaluator,
        *,
        access: Access,
        address: str,
        observe: facts.Observer,
        max_concurrent_rpcs: int,
        connection_max_age_seconds: float,
        certificate: "CertificateFiles | None" = None,
    ) -> None:
        """Put the service together; nothing listens before `start`.

        `max_concurrent_rpcs` counts streams too: one or two for each ScaledObject with an
        `external-push` trigger. After `connection_max_age_seconds` a client is asked to connect
        again, and a StreamIsActive ends with OK, so that new replicas get their share of both.
        """
        self._evaluator = evaluator
        self.draining = asyncio.Event()
        """Set when the server stops; streams end with it."""
        self._address, self._certificate = address, certificate
        rpcs = servicer.Servicer(
            evaluator,
            access=access,
            observe=observe,
            draining=self.draining,
            stream_seconds=connection_max_age_seconds,
        )
        interceptor = CallInterceptor(SERVICE_NAME, observe, max_concurrent_rpcs)
        options = channel_options(connection_max_age_seconds)
        self._server = grpc.aio.server(interceptors=[interceptor], options=options)
        externalscaler_pb2_grpc.add_ExternalScalerServicer_to_server(rpcs, self._server)
        check = grpc.unary_unary_rpc_method_handler(
            self._check_health,
            pb.HealthCheckRequest.FromString,
            pb.HealthCheckResponse.SerializeToString,
        )
        health = grpc.method_handlers_generic_handler(HEALTH_NAME, {"Check": check})
        self._server.add_generic_rpc_handlers((health,))
        names = (SERVICE_NAME, HEALTH_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)

    async def start(self) -> int:
        """Listen and serve; return the port, or raise SettingsError if it cannot listen."""
        try:
            if self._certificate is None:
                port = self._server.add_insecure_port(self._address)
            else:
                credentials = _following_credentials(self._certificate)
                port = self._server.add_secure_port(self._address, credentials)
        except RuntimeError as error:
            message = (
                f"cannot listen on {self._address!r}: expected host:port with an address of this "
                "host and a port that is free"
            )
            if self._certificate is not None:
                message += ", and a certificate of RSA or ECDSA, which gRPC's library supports"
            raise errors.SettingsError(message) from error
        await self._server.start()
        return port

    async def _check_health(
        self, request: pb.HealthCheckRequest, context: Context
    ) -> pb.HealthCheckResponse:
        if request.service == "sources":
            down = await self._evaluator.sources_down(_SOURCES_WAIT_SECONDS)
            if down:
                texts = (f"source {each.name} at {each.url}: {each.reason}" for each in down)
                text = status_message("; ".join(texts))
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, text)
        elif request.service not in ("", SERVICE_NAME, HEALTH_NAME):
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service here")
        return pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVING)

    async def stop(self, grace_seconds: float) -> None:
        """End streams with OK, let open calls finish, and cut those open after `grace_seconds`."""
        self.draining.set()
        await self._server.stop(grace_seconds)


def channel_options(connection_max_age_seconds: float) -> list[tuple[str, int]]:
    """Return gRPC's options for ports, requests and connections."""
    longest_seconds = max(connection_max_age_seconds, servicer.LONGEST_SPEC_SECONDS)
    grace_seconds = longest_seconds + _GRACE_SECONDS_BEYOND_STREAMS
    return [
        # Without this a second process on the same port would start and take half of the calls.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
        ("grpc.max_connection_age_ms", _milliseconds(connection_max_age_seconds)),
        ("grpc.max_connection_age_grace_ms", _milliseconds(grace_seconds)),
        # KEDA sends no keepalives, but a mesh or another client may, as often as grpc-go allows.
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        # The server's own keepalives find clients that vanished and still hold streams open.
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.max_pings_without_data", 0),
    ]


def _milliseconds(seconds: float) -> int:
    return min(round(seconds * 1000), 2**31 - 1)


def _following_credentials(files: "CertificateFiles") -> grpc.ServerCredentials:
    """Return credentials that follow the files: a change counts from the next handshake on."""
    shown = files.current()

    def next_configuration() -> grpc.ServerCertificateConfiguration | None:
        """Return what to show from now on, or None for no change; one thread calls at a time."""
        nonlocal shown
        certificate = files.current()
        if certificate == shown:
            return None
        shown = certificate
        return _configuration(certificate)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(shown),
        next_configuration,  # type: ignore[arg-type] # None is allowed, and keeps what there is
        require_client_authentication=shown.client_ca is not None,
    )


def _configuration(certificate: "Certificate") -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(certificate.key, certificate.chain)], certificate.client_ca
    )
