"""The instants of a snapshot, and the server's clock. Pure.

Instants are multiples of a step, the same for all triggers and on every server. They are counted in
whole milliseconds, so that they equal the times in a server's answers to the last digit. The
server's clock is known from its answers.
"""

import math
import operator
import time
from collections.abc import Callable, Iterable

from keda_gpu_scaler import errors
from keda_gpu_scaler.snapshot.observation import Points, Row

HISTORY_STEP_SECONDS = 120.0
"""Whether a pod existed can be seen at a coarse step, and 30 instants an hour are cheap."""
HISTORY_SECONDS = 3600.0 + 2 * HISTORY_STEP_SECONDS
"""An hour, as long as pods are waited for, and what its coarse step can hide at both ends."""


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


def between(first: float, last: float, rows: Iterable[Row]) -> list[Row]:
    """Return the rows with the points from `first` to `last` in order, without rows that have none.

    Prometheus 2 and VictoriaMetrics show one more instant, at the very beginning of a span. No
    server shows one that was not asked for, such as a later one, which would be fresh for ever.
    """
    kept, inside = list[Row](), None
    for row in rows:
        times = Points.of(row.points).times
        if times is not inside:  # as other rows have them
            if not all(map(operator.le, (first, *times), (*times, last))):
                points = sorted(point for point in row.points if first <= point[0] <= last)
                kept += [Row(row.labels, points)] if points else []
                continue
            inside = times
        if times:
            kept.append(row)
    return kept


def milliseconds(seconds: float) -> int:
    """Return a time in whole milliseconds, as servers count it."""
    return round(seconds * 1000)


SYNCHRONIZED_SECONDS = 300.0
"""Clocks drift by milliseconds in this time."""


FARTHEST_SECONDS = 365 * 86_400.0
"""Far above what the clocks of a working server and of this machine differ by."""


class ServerClock:
    """The server's time; this machine's time until the server was asked for its own."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start with this machine's time; `clock` gives seconds that never go back."""
        self._clock = clock
        self._offset = self._here = time.time() - clock()
        self._set_at = float("-inf")

    @property
    def is_synchronized(self) -> bool:
        """Whether the server was asked recently."""
        return self._clock() - self._set_at < SYNCHRONIZED_SECONDS

    def set(self, seconds: float) -> None:
        """Set the server's present time, or raise SourceMalformedError if one of them is wrong."""
        here = self._clock() + self._here
        if not abs(seconds - here) <= FARTHEST_SECONDS:
            raise errors.SourceMalformedError(
                f"a clock that says {seconds:.15g} s since 1970, and this machine's says "
                f"{here:.0f}; expected clocks that are less than a year apart"
            )
        self._offset, self._set_at = seconds - self._clock(), self._clock()

    def now(self) -> float:
        """Return the server's time."""
        return self._clock() + self._offset
