"""The HTTP server: it listens, serves one application, and stops in order."""

import asyncio
import functools
import socket
import ssl
from collections.abc import Callable

from starlette.applications import Starlette

from keda_gpu_scaler import errors, http_server
from keda_gpu_scaler.certificates import Certificate
from keda_gpu_scaler.http_server import Bounds


class HttpServer:
    """An HTTP server that starts once and stops once."""

    def __init__(
        self,
        app: Starlette,
        host: str,
        port: int,
        certificate: Callable[[], Certificate] | None = None,
        bounds: Bounds = Bounds(),  # noqa: B008 - a value that nobody can change
    ) -> None:
        """Listen to nothing yet.

        Args:
            app: what to serve.
            host: one of this machine's addresses or names; empty for every address.
            port: 0 takes a free one.
            certificate: returns the one of this moment, to speak TLS and nothing else; it is asked
                at each handshake. None: no TLS.
            bounds: what clients may take.
        """
        tls = None if certificate is None else _contexts(certificate)
        self._server = http_server.create(app, bounds, tls)
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
        """Wait until the server has ended, and return what ended it, if that was an error."""
        if self._serving is None:
            return None
        await asyncio.wait({self._serving})
        return None if self._serving.cancelled() else self._serving.exception()

    async def stop(self) -> None:
        """Take no more connections and let answers in progress finish."""
        self._server.should_exit = True
        await self.ended()
        if self._listener is not None:
            self._listener.close()


def _contexts(certificate: Callable[[], Certificate]) -> Callable[[], ssl.SSLContext]:
    """Return what makes a context of each certificate, and of one that stays the same only once."""
    made = functools.lru_cache(maxsize=1)(Certificate.context)
    return lambda: made(certificate())


def _bind(host: str, port: int) -> socket.socket:
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)  # noqa: S104
        family, *_, address = found[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        reason = error.strerror or error
        raise errors.SettingsError(
            f"cannot listen on port {port} of {host or 'any address'}: {reason}"
        ) from error
