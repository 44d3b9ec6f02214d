"""How long a stream lives, and when `true` is due on it.

Each `true` costs KEDA a write to the Kubernetes API and restarts its cooldown, so it is sent on the
edge. The one repetition is for a workload without pods: KEDA may drop a push, and nothing else
would wake it. `false` is never sent: KEDA since 2.18 ignores it, older ones would scale to zero
although another trigger is active.
"""

import asyncio

from keda_gpu_scaler import decision

REPEAT_SECONDS = 15.0


class Life:
    """The time a stream is open: until the server drains or the stream has had its share.

    A stream that ended with OK is opened again by KEDA 2 s later, on whichever replica comes next;
    that is how a new replica gets its part of the streams.
    """

    def __init__(self, draining: asyncio.Event, seconds: float) -> None:
        self._draining = draining
        self._ends_at = _now() + seconds

    async def is_over_within(self, seconds: float) -> bool:
        """Wait for so long, or until the life is over; tell whether it is over."""
        left = self._ends_at - _now()
        try:
            async with asyncio.timeout(min(seconds, left)):
                await self._draining.wait()
        except TimeoutError:
            return left <= seconds
        return True

    async def is_over(self) -> None:
        """Wait until the life is over."""
        await self.is_over_within(float("inf"))


class Pushes:
    """Decides when `true` is due, from one evaluation after the other."""

    def __init__(self) -> None:
        self._signalled = False
        self._pushed_at = float("-inf")

    def is_due(self, decided: decision.Decision, *, step_seconds: float, now: float) -> bool:
        """Tell whether this decision is to be pushed; `now` is any clock's seconds."""
        rising = decided.signal and not self._signalled
        self._signalled = decided.signal
        due = rising or (self._may_be_lost(decided) and self._is_old(step_seconds, now))
        if due:
            self._pushed_at = now
        return due

    @staticmethod
    def _may_be_lost(decided: decision.Decision) -> bool:
        return decided.signal and decided.reporting_pods == 0

    def _is_old(self, step_seconds: float, now: float) -> bool:
        # Evaluations come a little early or late; half a step decides for the nearest one.
        repeat_seconds = max(step_seconds, REPEAT_SECONDS)
        return now - self._pushed_at > repeat_seconds - step_seconds / 2


def _now() -> float:
    return asyncio.get_running_loop().time()
