"""One task at a time, which any number of callers wait for."""

import asyncio
from collections.abc import Coroutine


class SingleFlight:
    """At most one task under way. A caller that stops waiting leaves it running for the others."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def is_free(self) -> bool:
        """Whether a task can be launched; after one has ended, once `land` was called."""
        return self._task is None

    @property
    def is_under_way(self) -> bool:
        return self._task is not None and not self._task.done()

    def launch(self, work: Coroutine[None, None, None], name: str) -> None:
        """Begin a task, in place of one that has ended."""
        self._task = asyncio.create_task(work, name=name)

    def land(self) -> None:
        """Let go of a task that has ended.

        An exception in it is a fault of ours, because tasks deal with those of sources themselves.
        It is raised here, to the caller that comes next.
        """
        if self._task is not None and self._task.done():
            task, self._task = self._task, None
            task.result()

    async def wait(self, timeout_seconds: float) -> bool:
        """Wait for the task that is there now, if there is one; tell whether that has ended."""
        task = self._task
        if task is None:
            return True
        await asyncio.wait({task}, timeout=timeout_seconds)
        return task.done()

    async def close(self) -> None:
        """Cancel the task that is there now, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
