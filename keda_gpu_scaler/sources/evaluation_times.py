"""The instants of a snapshot, and the server's clock. Pure.

Instants are multiples of a step, the same for all triggers and on every server. They are counted in
whole milliseconds, so that they equal the times in a server's answers to the last digit. The
server's clock is known from its answers.
"""

import math
import time
from collections.abc import Callable, Iterable

from keda_gpu_scaler.snapshot.observation import Row

HISTORY_SECONDS = 3600.0
HISTORY_STEP_SECONDS = 120.0
"""Whether a pod existed can be seen at a coarse step, and 30 instants an hour are cheap."""


def floored(seconds: float, step: float) -> float:
    """Return the last multiple of the step up to a time."""
    step_ms = milliseconds(step)
    return math.floor(seconds * 1000) // step_ms * step_ms / 1000


def whole_steps(span_seconds: float, step: float) -> float:
    """Return the span, rounded up to a whole number of steps.

    Prometheus aligns a subquery to multiples of its step, VictoriaMetrics to its beginning: both
    show the same instants if begin and end are such multiples.
    """
    step_ms = milliseconds(step)
    return math.ceil(milliseconds(span_seconds) / step_ms) * step_ms / 1000


def within(at: float, span_seconds: float, step: float) -> tuple[float, ...]:
    """Return the multiples of the step in (at - span, at]."""
    last, step_ms = milliseconds(at), milliseconds(step)
    first = (last - milliseconds(span_seconds)) // step_ms + 1
    return tuple(number * step_ms / 1000 for number in range(first, last // step_ms + 1))


def since(first: float, rows: Iterable[Row]) -> list[Row]:
    """Return the rows with the points from the instant `first` on, without rows that have none.

    Prometheus 2 and VictoriaMetrics show one more instant, at the very beginning of a span.
    """
    cut = (_cut(first, row) for row in rows)
    return [row for row in cut if row.points]


def _cut(first: float, row: Row) -> Row:
    if row.points[0][0] >= first:
        return row
    return Row(row.labels, [point for point in row.points if point[0] >= first])


def milliseconds(seconds: float) -> int:
    """Return a time in whole milliseconds, as servers count it."""
    return round(seconds * 1000)


SYNCHRONIZED_SECONDS = 300.0
"""Clocks drift by milliseconds in this time."""


class ServerClock:
    """The server's time; this machine's time until the server was asked for its own."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with this machine's time; `clock` gives seconds that never go back."""
        self._clock = clock
        self._offset = time.time() - clock()
        self._set_at = float("-inf")

    @property
    def is_synchronized(self) -> bool:
        """Whether the server was asked recently."""
        return self._clock() - self._set_at < SYNCHRONIZED_SECONDS

    def set(self, seconds: float) -> None:
        """Set the server's present time."""
        self._offset, self._set_at = seconds - self._clock(), self._clock()

    def now(self) -> float:
        """Return the server's time."""
        return self._clock() + self._offset
