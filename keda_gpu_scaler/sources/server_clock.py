"""The clock of a server, as far as it was learned from what the server said."""

import time
from collections.abc import Callable

SYNCHRONIZED_SECONDS = 300.0
"""Clocks drift by milliseconds in this time."""


class ServerClock:
    """Tells the server's time; this machine's, until the server was asked."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Know nothing of the server yet; `clock` gives seconds that never go back."""
        self._clock = clock
        self._offset = time.time() - clock()
        self._set_at = float("-inf")

    @property
    def is_synchronized(self) -> bool:
        """Whether the server was asked lately."""
        return self._clock() - self._set_at < SYNCHRONIZED_SECONDS

    def set(self, seconds: float) -> None:
        """Take this for what the server says the time is now."""
        self._offset, self._set_at = seconds - self._clock(), self._clock()

    def now(self) -> float:
        """Return the time there."""
        return self._clock() + self._offset
