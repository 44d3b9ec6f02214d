"""A TCP relay in front of a server, which a test can shut or jam to simulate network failures.

It forwards bytes without parsing them. Open: as if it were not there. Shut: connections are
refused, as when the process behind is gone. Jammed: connections are taken and nothing ever comes.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import Enum

from tests.support.processes import free_port

_CHUNK_BYTES = 65536
_TURNS_UNTIL_PIPED = 4
"""Steps of the event loop from a connection that was accepted to the pipe that serves it."""


class Door(Enum):
    """What a new connection meets."""

    OPEN = "open"
    SHUT = "shut"
    JAMMED = "jammed"


@dataclass(slots=True)
class Relay:
    """One relay on 127.0.0.1, in front of another port there."""

    target: int
    port: int = field(default_factory=free_port)
    door: Door = Door.OPEN
    _server: asyncio.Server | None = None
    _pipes: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @contextlib.asynccontextmanager
    async def standing(self) -> AsyncIterator["Relay"]:
        """Relay until the block ends."""
        await self.turn(Door.OPEN)
        try:
            yield self
        finally:
            await self._close()

    async def turn(self, door: Door) -> None:
        """Change the state, and cut every existing connection."""
        await self._close()
        self.door = door
        if door is not Door.SHUT:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await _stop_accepting(server)
            server.close()
        for pipe in self._pipes:
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)
        if server is not None:
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pipe = asyncio.current_task()
        assert pipe is not None
        self._pipes.add(pipe)
        try:
            await self._forward(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # a connection that is cut is what this class is for
        finally:
            self._pipes.discard(pipe)
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.door is Door.JAMMED:
            await asyncio.Event().wait()
        inside, outside = await asyncio.open_connection("127.0.0.1", self.target)
        try:
            await asyncio.gather(_pump(reader, outside), _pump(inside, writer))
        finally:
            outside.transport.abort()


async def _stop_accepting(server: asyncio.Server) -> None:
    """Let connections that were just accepted become pipes: a closing server leaves them open."""
    for listener in server.sockets:
        asyncio.get_running_loop().remove_reader(listener)
    for _ in range(_TURNS_UNTIL_PIPED):
        await asyncio.sleep(0)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(_CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
