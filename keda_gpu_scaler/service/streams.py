"""How long a stream lives, and when `true` is pushed on it.

Each `true` costs KEDA a write to the Kubernetes API and restarts its cooldown, so it is sent only
when the workload becomes active. It is repeated only for a workload without pods: KEDA may drop a
push, and nothing else would scale the workload up. `false` is never sent: KEDA since 2.18 ignores
it, and older versions would scale to zero although another trigger is active.
"""

import asyncio
import contextlib
import math
import random
from collections.abc import Iterator

from keda_gpu_scaler.decision.decision import Decision

REPEAT_SECONDS = 15.0
LONGEST_SPEC_SECONDS = 86_400.0
"""Of a StreamMetricSpec: it says nothing after its first message, on whichever connection it is."""
_EARLY_SECONDS = 2.5
"""Evaluations come a little early or late; this is half of the usual time between two."""


def spec_seconds() -> float:
    """Return how long one StreamMetricSpec lives: half a day to a day, each for a time of its own.

    For each one that opens KEDA 2.21 reconciles its ScaledObject, with six requests to the API
    server, of which it sends 20 a second. A thousand of them are opened at once when KEDA starts.
    """
    return random.uniform(LONGEST_SPEC_SECONDS / 2, LONGEST_SPEC_SECONDS)  # noqa: S311 - no secret


class Life:
    """The time a stream is open: until the server drains or the stream's time is over.

    KEDA opens a stream that ended with OK again after 2 s, on any replica. This is how a new
    replica gets its share of the streams.
    """

    def __init__(self, draining: asyncio.Event, seconds: float) -> None:
        self._draining = draining
        self._ends_at = _now() + seconds

    @contextlib.contextmanager
    def heard_by(self, news: asyncio.Event) -> Iterator[None]:
        """Set `news` when the server drains, while the context lasts."""
        draining = asyncio.create_task(self._draining.wait(), name="draining")
        draining.add_done_callback(lambda _: news.set())
        try:
            yield
        finally:
            draining.cancel()

    async def is_over_within(self, seconds: float, news: asyncio.Event) -> bool:
        """Wait for news, this long at most; return whether the stream's time is over.

        There are thousands of streams, so each needs one timer and no task. `news` is set when this
        returns, also after a timeout.
        """
        ends_at = min(_now() + seconds, self._ends_at)
        timer = asyncio.get_running_loop().call_at(ends_at, news.set)
        try:
            await news.wait()
        finally:
            timer.cancel()
        return self._draining.is_set() or self._ends_at <= _now()

    async def is_over(self) -> None:
        """Wait until the stream's time is over; a timer may be early by the clock's resolution."""
        news = asyncio.Event()
        over = False
        with self.heard_by(news):
            while not over:
                news.clear()
                over = await self.is_over_within(math.inf, news)


class Pushes:
    """Decides after each evaluation whether to push `true`."""

    def __init__(self) -> None:
        self._was_active = False
        self._pushed_at = float("-inf")

    def is_due(self, decision: Decision, now: float) -> bool:
        """Return whether to push this decision; `now` is in seconds of any one clock."""
        rising = decision.activated and not self._was_active
        self._was_active = decision.activated
        is_old = now - self._pushed_at > REPEAT_SECONDS - _EARLY_SECONDS
        due = rising or (decision.activated and not decision.shows_pods and is_old)
        if due:
            self._pushed_at = now
        return due


def _now() -> float:
    return asyncio.get_running_loop().time()
