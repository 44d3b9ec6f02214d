"""Time that passes when a test says so, and answers that take none."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Clock:
    """Seconds that never go back by themselves."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


async def at_once(asked: Coroutine[Any, Any, T]) -> T:
    """Return what is answered without waiting for anything but the event loop's next steps."""
    answer = asyncio.create_task(asked)
    for _ in range(100):
        await asyncio.sleep(0)
    if not answer.done():
        answer.cancel()
        await asyncio.wait({answer})
        raise AssertionError("it waits")
    return answer.result()
