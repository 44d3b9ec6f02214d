"""The HTTP server: uvicorn with bounds, with TLS and without its own signal handlers.

Uvicorn's own limit of connections counts those that are silent and then refuses every request,
those of the kubelet's probes among them. Here the connections that wait longest make room.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from keda_gpu_scaler import errors

if TYPE_CHECKING:
    from keda_gpu_scaler.transport.certificates import Certificate


class Bounds(NamedTuple):
    """The limits of a server's clients. Answers take milliseconds, and a body up to ten seconds."""

    connections: int = 512
    """Prometheus, the kubelet and senders of alerts need a handful. Of more than this, those
    without any request are cut first, then those that wait longest."""
    request_seconds: float = 60.0
    """From a connection's begin or the head of a request to the head of the next one: a client that
    sends nothing or does not read the answer is cut."""
    shutdown_seconds: int = 5
    """After this time only clients are left that do not read."""


class _Connection(h11.Connection):
    """Refuses bodies in chunks: a chunk of one byte would cost as much as one of 64 KiB.

    Alertmanager, Grafana and other replicas send the length of their bodies.
    """

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request) and b"transfer-encoding" in dict(event.headers):
            raise h11.RemoteProtocolError("a body in chunks")
        return event


class _Protocol(H11Protocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.conn = _Connection(h11.SERVER)

    def data_received(self, data: bytes) -> None:
        if not self.transport.is_closing():  # nothing is parsed behind a refusal
            super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(f"{msg} A body needs a Content-Length.")


class HttpServer(uvicorn.Server):
    """An HTTP server that starts once and stops once."""

    serving: asyncio.Task[None]
    """Ends with the server; it is there from `start` on."""

    def __init__(
        self,
        app: Starlette,
        host: str,
        port: int,
        certificate: "Callable[[], Certificate] | None" = None,
        bounds: Bounds = Bounds(),  # noqa: B008 - an immutable value
    ) -> None:
        """Prepare the server; `start` begins to listen.

        An empty host is every address of this machine, and port 0 takes a free one. `certificate`
        returns the current certificate and is called at each handshake; None: no TLS.
        """
        config = uvicorn.Config(
            app,
            host,
            port,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=bounds.shutdown_seconds,
            ssl_context_factory=None
            if certificate is None
            else lambda *_: _tls_context(certificate),
        )
        super().__init__(config)
        self._bounds = bounds
        self._since: dict[tuple[H11Protocol, RequestResponseCycle | None], float] = {}

    async def start(self) -> int:
        """Listen and serve; return the port, or raise SettingsError if it cannot listen."""
        host, port = self.config.host, self.config.port
        try:
            listener = _listening_socket(host, port)
        except OSError as error:
            where = f"port {port} of {host or 'any address'}"
            reason = error.strerror or error
            raise errors.SettingsError(f"cannot listen on {where}: {reason}") from error
        # Connections inherit it. Otherwise the body waits 40 ms for the client to confirm the head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.serving = asyncio.create_task(self.serve([listener]), name="http")
        self.serving.add_done_callback(lambda _: listener.close())
        return int(listener.getsockname()[1])

    async def stop(self) -> None:
        """Take no more connections and finish the answers in progress."""
        self.should_exit = True
        await asyncio.wait({self.serving})

    async def on_tick(self, counter: int) -> bool:
        """Cut connections that wait too long, and those that are too many.

        Uvicorn calls it ten times a second. Cut connections lose unsent data: to wait until the
        client reads it could take forever.
        """
        now = asyncio.get_running_loop().time()
        connections = cast("set[H11Protocol]", self.server_state.connections)
        requests = [(connection, connection.cycle) for connection in connections]
        self._since = {request: self._since.get(request, now) for request in requests}
        requests.sort(key=lambda request: (request[1] is not None, self._since[request]))
        too_many = max(0, len(requests) - self._bounds.connections)
        for index, request in enumerate(requests):
            if index < too_many or now - self._since[request] > self._bounds.request_seconds:
                connection, _ = request
                connection.transport.abort()
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers: the process has its own."""
        yield


def _tls_context(certificate: "Callable[[], Certificate]") -> ssl.SSLContext:
    """Return a context that shows the current certificate in each handshake."""

    def show(client: ssl.SSLObject, _server_name: str | None, _context: ssl.SSLContext) -> None:
        client.context = certificate().context

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # OpenSSL calls it for clients that send no name as well.
    context.sni_callback = show
    return context


def _listening_socket(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    addresses = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)  # noqa: S104
    family, *_, address = addresses[0]
    return socket.create_server(address[:2], family=family)
