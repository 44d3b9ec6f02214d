"""An event loop whose time passes only while nothing is left to do, whatever a clock says.

Everything has to happen in its thread: no sockets, no processes, and executors that run at once.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from tests.stories.loops.loop import AtOnce

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing, and counts how long it would have waited."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> Any:  # noqa: ANN401 - the selector's own
        """Let the time pass until the next timer is due."""
        if timeout is None:
            raise RuntimeError("all tasks wait, and no timer is left")
        self.passed += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that begins at 0 s."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return how long the timers have waited by now."""
        return self._jumping.passed


def run(played: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns, however long it sleeps."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.get_loop().set_default_executor(AtOnce())
        return runner.run(played)
