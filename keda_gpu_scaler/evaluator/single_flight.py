"""One task at a time, which any number of callers wait for, until it is slow."""

import asyncio
from collections.abc import Callable, Coroutine

from keda_gpu_scaler.times import SLOW_SECONDS


class SingleFlight:
    """At most one task under way. A caller that stops waiting leaves it running for the others."""

    def __init__(self, clock: Callable[[], float], slow_seconds: float = SLOW_SECONDS) -> None:
        """Begin without a task; nobody waits for one longer than `slow_seconds`."""
        self.clock, self._slow_seconds = clock, slow_seconds
        self._task: asyncio.Task[None] | None = None
        self.launched_at = float("-inf")

    @property
    def is_under_way(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def slow_at(self) -> float:
        """When the newest task is slow."""
        return self.launched_at + self._slow_seconds

    @property
    def trouble(self) -> str | None:
        """Why callers get no answer yet; None: no task is slow."""
        is_slow = self.is_under_way and self.clock() >= self.slow_at
        return f"no answer within {self._slow_seconds:g} s" if is_slow else None

    def launch(self, work: Callable[[], Coroutine[None, None, None]], name: str) -> None:
        """Begin a task, in place of one that has ended."""
        self._land()
        self.launched_at = self.clock()
        self._task = asyncio.create_task(work(), name=name)

    async def wait(self, deadline: float) -> bool:
        """Wait for the task that is there now, until it is slow; tell whether it has ended."""
        task = self._task
        if task is None:
            return True
        seconds = min(deadline, self.slow_at) - self.clock()
        await asyncio.wait({task}, timeout=max(0.0, seconds))
        self._land()
        return task.done()

    def _land(self) -> None:
        """Let go of a task that has ended.

        An exception in it is a fault of ours, because tasks deal with those of sources themselves.
        It is raised here, to one caller.
        """
        if self._task is not None and self._task.done():
            task, self._task = self._task, None
            task.result()

    async def close(self) -> None:
        """Cancel the task that is there now, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
