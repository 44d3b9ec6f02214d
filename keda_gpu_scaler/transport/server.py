"""The HTTP server: uvicorn with bounds, with TLS and without its own signal handlers.

Uvicorn waits forever for the first line of a request, and counts silent clients among its
connections: five hundred of them would keep all others out. It knows nothing about connections
before the end of a TLS handshake, so those are held in `handshakes`.
"""

import asyncio
import contextlib
import functools
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from keda_gpu_scaler import errors
from keda_gpu_scaler.transport.handshakes import Handshake, Handshakes

if TYPE_CHECKING:
    from keda_gpu_scaler.transport.certificates import Certificate


class Bounds(NamedTuple):
    """The limits of a server's clients."""

    connections: int = 512
    """Prometheus, the kubelet and senders of alerts need a handful; the limit is against other
    clients. One more gets a 503; with TLS, where connections count from their first byte on, it is
    closed."""
    handshake_seconds: float = 5.0
    """From the connection to the end of its TLS handshake; clients begin it at once."""
    head_seconds: float = 10.0
    """From the connection to the end of the first request's head; clients send it at once."""
    next_head_seconds: float = 60.0
    """From one request's head to the next one's, so it limits the answer as well. Answers take
    milliseconds, and a sender's body may take ten seconds. A client with a longer pause between two
    requests has to connect again, which uvicorn demands much earlier."""
    shutdown_seconds: int = 5
    """Answers take milliseconds; after this time only clients are left that do not read."""


class Server(uvicorn.Server):
    """Uvicorn without its own signal handlers: the process has its own."""

    def __init__(self, config: uvicorn.Config, handshakes: Handshakes | None) -> None:
        """Serve as `config` says; `handshakes` end with the server."""
        super().__init__(config)
        self._handshakes = handshakes

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for answers in progress; cut clients that sent no request or do not read."""
        if self._handshakes is not None:
            self._handshakes.abort()
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield


def create_server(
    app: Starlette,
    bounds: Bounds,
    tls: Callable[[], ssl.SSLContext] | None = None,
) -> Server:
    """Return a server that does not listen yet.

    Args:
        app: the application to serve.
        bounds: the limits of clients.
        tls: returns the current context, called at each handshake; None: no TLS.
    """
    protocol: Callable[..., asyncio.Protocol] = functools.partial(_Protocol, bounds)
    handshakes = None
    if tls is not None:
        handshakes = Handshakes(tls, bounds.handshake_seconds, bounds.connections)
        protocol = functools.partial(_secured, handshakes, protocol)
    return Server(
        uvicorn.Config(
            app,
            http=cast("type[asyncio.Protocol]", protocol),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            # Uvicorn refuses the connection that reaches the limit, so the limit is one more.
            limit_concurrency=bounds.connections + 1,
            timeout_graceful_shutdown=bounds.shutdown_seconds,
        ),
        handshakes,
    )


def _secured(
    handshakes: Handshakes,
    protocol: Callable[..., asyncio.Protocol],
    server_state: ServerState,
    **named: Any,  # noqa: ANN401 - uvicorn's own
) -> asyncio.Protocol:
    """Return a protocol that begins with the handshake; uvicorn makes one for each connection."""
    speaking = functools.partial(protocol, server_state=server_state, **named)
    return Handshake(handshakes, speaking, lambda: len(server_state.connections))


class _Protocol(H11Protocol):
    """HTTP/1.1 that cuts a connection without a request for too long."""

    def __init__(self, bounds: Bounds, *given: Any, **named: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(*given, **named)
        self._bounds = bounds
        self._timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait(self._bounds.head_seconds)

    def handle_events(self) -> None:
        """Handle received data; after a complete head the wait starts again."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._wait(self._bounds.next_head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the wait."""
        super().connection_lost(exc)
        self._forget()

    def _wait(self, seconds: float) -> None:
        self._forget()
        # Abort, although unread data is lost: to wait until the client reads could take forever.
        self._timeout = self.loop.call_later(seconds, self.transport.abort)

    def _forget(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None


class HttpServer:
    """An HTTP server that starts once and stops once."""

    def __init__(
        self,
        app: Starlette,
        host: str,
        port: int,
        certificate: "Callable[[], Certificate] | None" = None,
        bounds: Bounds = Bounds(),  # noqa: B008 - an immutable value
    ) -> None:
        """Prepare the server; `start` begins to listen.

        Args:
            app: the application to serve.
            host: one of this machine's addresses or names; empty for every address.
            port: the port; 0 takes a free one.
            certificate: returns the current certificate, called at each handshake; the port then
                speaks TLS only. None: no TLS.
            bounds: the limits of clients.
        """
        tls = None if certificate is None else _contexts(certificate)
        self._server = create_server(app, bounds, tls)
        self._host, self._port = host, port
        self._listener: socket.socket | None = None
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Listen and serve; return the port.

        Raises:
            errors.SettingsError: nothing can listen on this address.
        """
        self._listener = _bind(self._host, self._port)
        port = int(self._listener.getsockname()[1])
        self._serving = asyncio.create_task(self._server.serve([self._listener]), name="http")
        return port

    async def ended(self) -> BaseException | None:
        """Wait until the server has ended; return the error that ended it, if any."""
        if self._serving is None:
            return None
        await asyncio.wait({self._serving})
        return None if self._serving.cancelled() else self._serving.exception()

    async def stop(self) -> None:
        """Take no more connections and finish the answers in progress."""
        self._server.should_exit = True
        await self.ended()
        if self._listener is not None:
            self._listener.close()


def _contexts(certificate: "Callable[[], Certificate]") -> Callable[[], ssl.SSLContext]:
    """Return a function that returns the current context, made only once per certificate."""

    @functools.lru_cache(maxsize=1)
    def made(current: "Certificate") -> ssl.SSLContext:
        return current.context()

    return lambda: made(certificate())


class _Listener(socket.socket):
    """A listening socket that fails once at a time when no file descriptor is left.

    asyncio accepts as many connections at once as its backlog is long, and for each one that fails
    it writes a line and sets a timer to try again. Within seconds it would do nothing else.
    """

    _has_failed = False

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; after a failure, say first that there is none."""
        if self._has_failed:
            self._has_failed = False
            raise BlockingIOError
        try:
            return super().accept()
        except BlockingIOError:
            raise
        except OSError:
            self._has_failed = True
            raise


def _bind(host: str, port: int) -> socket.socket:
    try:
        return _Listener(fileno=_listening(host, port).detach())
    except OSError as error:
        reason = error.strerror or error
        raise errors.SettingsError(
            f"cannot listen on port {port} of {host or 'any address'}: {reason}"
        ) from error


def _listening(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)  # noqa: S104
    family, *_, address = found[0]
    return socket.create_server(address[:2], family=family)
