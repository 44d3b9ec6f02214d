"""A TCP relay in front of a server, which a test can shut or jam to simulate network failures.

It forwards bytes without parsing them. Open: as if it were not there. Shut: connections are
refused, as when the process behind is gone. Jammed: connections are taken and nothing ever comes.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field
from enum import Enum

from testbed.loopback import LoopbackServer, pump
from testbed.processes import free_port


class Door(Enum):
    """What a new connection meets."""

    OPEN = "open"
    SHUT = "shut"
    JAMMED = "jammed"


@dataclass(slots=True)
class Relay(LoopbackServer):
    """One relay on 127.0.0.1, in front of another port there."""

    target: int
    port: int = field(default_factory=free_port, kw_only=True)
    """No outgoing connection takes it while the relay is shut."""
    door: Door = Door.OPEN

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def turn(self, door: Door) -> None:
        """Change the state, and cut every existing connection."""
        await self._close()
        self.door = door
        if door is not Door.SHUT:
            await self._open()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.door is Door.JAMMED:
                await asyncio.Event().wait()
            with contextlib.suppress(OSError):
                inside, outside = await asyncio.open_connection("127.0.0.1", self.target)
                try:
                    await asyncio.gather(pump(reader, outside), pump(inside, writer))
                finally:
                    outside.transport.abort()
        finally:
            writer.transport.abort()
