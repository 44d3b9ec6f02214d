"""A server on a free port of this machine, and the end of all that it has accepted."""

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Self


@dataclass(slots=True, kw_only=True)
class LoopbackServer:
    """Serves each connection in a task of its own, until the block ends."""

    _server: asyncio.Server | None = field(default=None, init=False)
    _connections: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    def _tls(self) -> ssl.SSLContext | None:
        """Return what it speaks TLS with; None: it does not."""
        return None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cut what is still open, and wait until it is gone."""
        assert self._server is not None
        self._server.close()
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
