"""How long a stream lives, and when `true` is due on it.

Each `true` costs KEDA a write to the Kubernetes API and restarts its cooldown, so it is sent on the
edge. The one repetition is for a workload without pods: KEDA may drop a push, and nothing else
would wake it. `false` is never sent: KEDA since 2.18 ignores it, older ones would scale to zero
although another trigger is active.
"""

import asyncio
import contextlib
import math
from collections.abc import Iterator

from keda_gpu_scaler.decision.decision import Decision

REPEAT_SECONDS = 15.0
_EARLY_SECONDS = 2.5
"""Evaluations come a little early or late: half of the usual time between two."""


class Life:
    """The time a stream is open: until the server drains or the stream has had its share.

    A stream that ended with OK is opened again by KEDA 2 s later, on whichever replica comes next;
    that is how a new replica gets its part of the streams.
    """

    def __init__(self, draining: asyncio.Event, seconds: float) -> None:
        self._draining = draining
        self._ends_at = _now() + seconds

    @contextlib.contextmanager
    def heard_by(self, news: asyncio.Event) -> Iterator[None]:
        """Have `news` set when the server drains, while the context lasts."""
        draining = asyncio.create_task(self._draining.wait(), name="draining")
        draining.add_done_callback(lambda _: news.set())
        try:
            yield
        finally:
            draining.cancel()

    async def is_over_within(self, seconds: float, news: asyncio.Event) -> bool:
        """Wait for so long, for news, or until the life is over; tell whether it is over.

        There are thousands of streams: one timer for each, and no task.

        Args:
            seconds: the longest time to wait.
            news: is set when this returns, because of whatever came first.
        """
        ends_at = min(_now() + seconds, self._ends_at)
        timer = asyncio.get_running_loop().call_at(ends_at, news.set)
        try:
            await news.wait()
        finally:
            timer.cancel()
        return self._draining.is_set() or self._ends_at <= _now()

    async def is_over(self) -> None:
        """Wait until the life is over; a timer may be early by the clock's resolution."""
        news = asyncio.Event()
        over = False
        with self.heard_by(news):
            while not over:
                news.clear()
                over = await self.is_over_within(math.inf, news)


class Pushes:
    """Decides when `true` is due, from one evaluation after the other."""

    def __init__(self) -> None:
        self._signalled = False
        self._pushed_at = float("-inf")

    def is_due(self, decided: Decision, now: float) -> bool:
        """Tell whether this decision is to be pushed; `now` is any clock's seconds."""
        rising = decided.activated and not self._signalled
        self._signalled = decided.activated
        is_old = now - self._pushed_at > REPEAT_SECONDS - _EARLY_SECONDS
        due = rising or (decided.activated and not decided.shows_pods and is_old)
        if due:
            self._pushed_at = now
        return due


def _now() -> float:
    return asyncio.get_running_loop().time()
