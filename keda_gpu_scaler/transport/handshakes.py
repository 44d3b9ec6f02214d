"""Connections from their first byte to the end of the TLS handshake, bounded in number and in time.

asyncio's own TLS servers hold each silent client for a minute, without a limit of their number, and
do not report connections before the handshake has ended.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import cast


class Handshakes:
    """The handshakes of one server."""

    def __init__(self, tls: Callable[[], ssl.SSLContext], seconds: float, most: int) -> None:
        """Limit the handshakes of one server.

        Args:
            tls: returns the current context.
            seconds: longer handshakes are cut.
            most: limit of connections at once, those after their handshake included.
        """
        self._tls, self._seconds, self._most = tls, seconds, most
        self._open: set[asyncio.Transport] = set()

    def admit(self, transport: asyncio.Transport, others: int) -> bool:
        """Admit a new connection, unless it exceeds the limit together with the `others`."""
        admitted = others + len(self._open) < self._most
        if admitted:
            self._open.add(transport)
        return admitted

    def abort(self) -> None:
        """Cut every handshake that has not ended."""
        for transport in list(self._open):
            transport.abort()

    async def done(
        self, transport: asyncio.Transport, protocol: asyncio.Protocol
    ) -> asyncio.Transport | None:
        """Wait for the end of a handshake; None: it failed, and the connection is cut."""
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport,
                protocol,
                self._tls(),
                server_side=True,
                ssl_handshake_timeout=self._seconds,
            )
        except OSError:  # an error or a timeout of the client: ssl.SSLError is an OSError
            transport.abort()
            return None
        finally:
            self._open.discard(transport)
        return cast("asyncio.Transport", secured)


class Handshake(asyncio.Protocol):
    """The protocol of a connection until its handshake has ended; then another takes over."""

    def __init__(
        self,
        handshakes: Handshakes,
        speaking: Callable[[], asyncio.Protocol],
        others: Callable[[], int],
    ) -> None:
        """Prepare one connection.

        Args:
            handshakes: the handshakes of the same server.
            speaking: makes the protocol that takes over after the handshake.
            others: counts the connections after their handshake.
        """
        self._handshakes, self._speaking, self._others = handshakes, speaking, others
        self._early = b""
        self._is_lost = False
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        opened = cast("asyncio.Transport", transport)
        # Here and not earlier: many are accepted at once, and each has to count those before it.
        if self._handshakes.admit(opened, self._others()):
            self._task = asyncio.create_task(self._shake(opened), name="TLS handshake")
        else:
            opened.abort()

    def data_received(self, data: bytes) -> None:
        """Keep data that comes with the end of the handshake, before the next protocol is set."""
        self._early += data

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio has it
        """Note that there is nothing to hand over any more."""
        self._is_lost = True

    async def _shake(self, opened: asyncio.Transport) -> None:
        secured = await self._handshakes.done(opened, self)
        if secured is not None and not self._is_lost:
            protocol = self._speaking()
            secured.set_protocol(protocol)
            protocol.connection_made(secured)
            if self._early:
                protocol.data_received(self._early)
