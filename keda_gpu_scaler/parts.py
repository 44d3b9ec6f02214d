"""The parts of the process that go on until they are stopped, watched together."""

import asyncio
from collections.abc import Mapping
from typing import Protocol


class Part(Protocol):
    """A part of the process that goes on until it is stopped."""

    async def ended(self) -> BaseException | None:
        """Wait until it has ended; return the error that ended it, if one did."""


async def watched(stop: asyncio.Event, parts: Mapping[str, Part]) -> None:
    """Wait for `stop`; a part that ends before it was asked to takes the process with it.

    Raises:
        RuntimeError: a part ended by surprise; it is named.
    """
    asked = asyncio.create_task(stop.wait(), name="stop")
    ended = {
        asyncio.create_task(part.ended(), name=f"{name} ended"): name
        for name, part in parts.items()
    }
    try:
        await asyncio.wait({asked, *ended}, return_when=asyncio.FIRST_COMPLETED)
        for task, name in ended.items():
            if task.done():
                raise RuntimeError(f"{name} ended by surprise") from task.result()
    finally:
        for waiting in (asked, *ended):
            waiting.cancel()
