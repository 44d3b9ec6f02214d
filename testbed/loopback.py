"""A server on a port of this machine, and the end of all that it has accepted."""

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Self

_PIECE_BYTES = 2**16


@dataclass(slots=True, kw_only=True)
class LoopbackServer:
    """Serves each connection in a task of its own, until the block ends."""

    port: int = 0
    """0: any free one, from the beginning of the block on."""
    _server: asyncio.Server | None = field(default=None, init=False)
    _connections: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    def _tls(self) -> ssl.SSLContext | None:
        """Return what it speaks TLS with; None: it does not."""
        return None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def _open(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self._tls())
        self._server, self.port = server, server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        """Cut what is still open, and wait until it is gone."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for _step in range(10):  # what was accepted a moment ago is not among them yet
            await asyncio.sleep(0)
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer), name="connection")
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until there are no more, and then say so."""
    while piece := await reader.read(_PIECE_BYTES):
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
