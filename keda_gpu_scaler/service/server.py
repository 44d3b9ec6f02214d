"""The gRPC server: its port, its TLS, its health service, its start and its stop.

It knows nothing about triggers and loads; `create_server` puts the parts together.

The health service says SERVING until the server drains, and nothing about sources. grpc's own
health service keeps each Watch open until the client leaves, so one watcher would delay a stop for
the whole grace period. Here the `draining` event ends every Watch.

gRPC's library takes TLS 1.2 and 1.3 and nothing older. It asks for the certificate in each
handshake; open connections and their streams go on unchanged.
"""
# ruff: noqa: N802 - the methods of the health service carry the names of its contract

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import grpc
from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from keda_gpu_scaler import errors
from keda_gpu_scaler.pb import externalscaler_pb2, externalscaler_pb2_grpc
from keda_gpu_scaler.service import servicer, streams
from keda_gpu_scaler.service.interceptor import CallInterceptor
from keda_gpu_scaler.service.servicer import Evaluations
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import Access

if TYPE_CHECKING:
    from keda_gpu_scaler.service.certificates import CertificateFiles
    from keda_gpu_scaler.transport.certificates import Certificate


def following_credentials(files: "CertificateFiles") -> grpc.ServerCredentials:
    """Return credentials that follow the files: a change counts from the next handshake on."""
    certificate = files.current()
    return grpc.dynamic_ssl_server_credentials(
        _configuration(certificate),
        Rotation(files, certificate),  # type: ignore[arg-type] # None is allowed, and keeps what there is
        require_client_authentication=certificate.client_ca is not None,
    )


class Rotation:
    """Gives each handshake its certificate; called in a thread of the library, one at a time."""

    def __init__(self, files: "CertificateFiles", shown: "Certificate") -> None:
        self._files, self._shown = files, shown

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the certificate to show from now on; None: no change."""
        certificate = self._files.current()
        if certificate == self._shown:
            return None
        self._shown = certificate
        return _configuration(certificate)


def _configuration(certificate: "Certificate") -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(certificate.key, certificate.chain)], certificate.client_ca
    )


Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class Health:
    """The standard health service: whether this process takes calls, per service and overall."""

    def __init__(self, services: frozenset[str], draining: asyncio.Event) -> None:
        self._services = services | {""}
        self._draining = draining

    async def Check(
        self, request: pb.HealthCheckRequest, context: Context
    ) -> pb.HealthCheckResponse:
        """Answer once; an unknown service is NOT_FOUND."""
        if request.service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service here")
        return self._answer(request.service)

    async def List(
        self, _request: pb.HealthListRequest, _context: Context
    ) -> pb.HealthListResponse:
        """Answer for every service."""
        return pb.HealthListResponse(
            statuses={service: self._answer(service) for service in self._services}
        )

    async def Watch(
        self, request: pb.HealthCheckRequest, _context: Context
    ) -> AsyncIterator[pb.HealthCheckResponse]:
        """Answer now and at the one possible change, when draining begins; then end the stream."""
        first = self._answer(request.service)
        yield first
        await self._draining.wait()
        last = self._answer(request.service)
        if last != first:
            yield last

    def _answer(self, service: str) -> pb.HealthCheckResponse:
        if service not in self._services:
            return pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVICE_UNKNOWN)
        if self._draining.is_set():
            return pb.HealthCheckResponse(status=pb.HealthCheckResponse.NOT_SERVING)
        return pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVING)


SERVICE_NAME = externalscaler_pb2.DESCRIPTOR.services_by_name["ExternalScaler"].full_name
HEALTH_NAME = pb.DESCRIPTOR.services_by_name["Health"].full_name

# A ScaledObject with all its triggers has to fit into etcd's 1.5 MiB, and a trigger has a few
# hundred characters. This leaves room for long values from the environment.
MAX_REQUEST_BYTES = 1024 * 1024
# gRPC spreads the age of connections by 10 % either way. A stream may be opened at the very end of
# a connection's age and then lives for the unspread age; 30 s are for its last evaluation.
_GRACE_SECONDS_BEYOND_STREAMS = 30.0
_INT32_MAX = 2**31 - 1


def create_server(  # noqa: PLR0913 - the composition root's values, all by name
    evaluations: Evaluations,
    *,
    access: Access,
    address: str,
    observe: facts.Observer,
    draining: asyncio.Event,
    max_concurrent_rpcs: int,
    connection_max_age_seconds: float,
    certificate: "CertificateFiles | None" = None,
) -> "GrpcServer":
    """Put the service together; nothing listens before `start`.

    Args:
        evaluations: decides the load and the activity of triggers.
        access: the sources, and the namespaces that may use them.
        address: host:port to listen on; port 0 takes a free one.
        observe: is told of every call of KEDA's contract that reached an RPC.
        draining: set when the process is about to end; streams end with it.
        max_concurrent_rpcs: the limit of open calls of KEDA's contract, streams included: one or
            two for each ScaledObject with an `external-push` trigger.
        connection_max_age_seconds: after this a client is asked to connect again, and a
            StreamIsActive ends with OK, so that new replicas get their share of both.
        certificate: the server's certificate and the CAs of clients; None: no TLS.
    """
    interceptor = CallInterceptor(SERVICE_NAME, observe=observe, max_concurrent=max_concurrent_rpcs)
    rpcs = servicer.Servicer(
        evaluations,
        access=access,
        observe=observe,
        draining=draining,
        stream_seconds=connection_max_age_seconds,
    )
    return GrpcServer(
        rpcs,
        interceptor,
        Listener(address, None if certificate is None else following_credentials(certificate)),
        draining,
        channel_options(connection_max_age_seconds),
    )


class Listener(NamedTuple):
    """The address to listen on, and the TLS credentials."""

    address: str
    """host:port; port 0 takes a free one."""
    credentials: grpc.ServerCredentials | None
    """None: plaintext."""


class GrpcServer:
    """A gRPC server that starts once and stops once."""

    def __init__(
        self,
        rpcs: servicer.Servicer,
        interceptor: CallInterceptor,
        listener: Listener,
        draining: asyncio.Event,
        options: list[tuple[str, int]],
    ) -> None:
        self._rpcs = rpcs
        self._interceptor = interceptor
        self._listener = listener
        self._draining = draining
        self._options = options
        self._server: grpc.aio.Server | None = None

    async def start(self) -> int:
        """Listen and serve; return the port, or raise SettingsError if it cannot listen."""
        server = grpc.aio.server(interceptors=[self._interceptor], options=self._options)
        externalscaler_pb2_grpc.add_ExternalScalerServicer_to_server(self._rpcs, server)
        health = Health(frozenset({SERVICE_NAME, HEALTH_NAME}), self._draining)
        health_pb2_grpc.add_HealthServicer_to_server(health, server)
        names = (SERVICE_NAME, HEALTH_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, server)
        port = _bind(server, self._listener)
        await server.start()
        self._server = server
        return port

    async def stop(self, grace_seconds: float) -> None:
        """Stop: health says NOT_SERVING, streams end with OK, then open calls finish.

        Calls still open after `grace_seconds` are cut; usually there are none.
        """
        self._draining.set()
        if self._server is not None:
            await self._server.stop(grace_seconds)
            self._server = None


def _bind(server: grpc.aio.Server, listener: Listener) -> int:
    address, credentials = listener
    try:
        if credentials is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise errors.SettingsError(_why_not_bound(server, listener)) from error
    # gRPC takes a port number modulo 65536.
    if address.rpartition(":")[2] not in ("0", str(port)):
        raise errors.SettingsError(
            f"cannot listen on {address!r}: expected a port number below 65536"
        )
    return port


def _why_not_bound(server: grpc.aio.Server, listener: Listener) -> str:
    """Return whether the address or the certificate is wrong; the library does not tell."""
    address, credentials = listener
    if credentials is not None:
        with contextlib.suppress(RuntimeError):
            server.add_insecure_port(address)  # of a server that never starts
            return (
                f"cannot speak TLS on {address!r}: gRPC's library refuses the certificate, its key "
                "or the CAs of its clients, and says why in a line of its own"
            )
    return (
        f"cannot listen on {address!r}: expected host:port with an address of this host "
        "and a port that is free"
    )


def channel_options(connection_max_age_seconds: float) -> list[tuple[str, int]]:
    """Return gRPC's options for ports, requests and connections."""
    longest_seconds = max(connection_max_age_seconds, streams.LONGEST_SPEC_SECONDS)
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
    return min(round(seconds * 1000), _INT32_MAX)
